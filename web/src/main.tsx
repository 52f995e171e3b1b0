import "./ui/tokens.css";
import "./ui/base.css";

import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { createRoot } from "react-dom/client";

import { takeTokenFromAddress } from "./api/auth";
import { router } from "./app/routes";
import { queries } from "./state/queries";
import { applyTheme } from "./state/theme";
import { Toasts, TooltipProvider } from "./ui";

// Before anything else, so that no router ever sees the token.
takeTokenFromAddress();
applyTheme();

const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no element #root");
createRoot(root).render(
  <QueryClientProvider client={queries}>
    <TooltipProvider delayDuration={400}>
      <RouterProvider router={router} />
      <Toasts />
    </TooltipProvider>
  </QueryClientProvider>,
);
