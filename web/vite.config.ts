import { fileURLToPath } from "node:url";

import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

// The built files are committed, so the same sources must give the same bytes on every machine:
// names follow from contents, and nothing of the machine or the clock goes in.
export default defineConfig({
  base: "/",
  plugins: [react()],
  resolve: {
    alias: {
      // Its build for browsers looks names of characters up by setting innerHTML, which the page's
      // policy forbids; the other one has a table.
      "decode-named-character-reference": fileURLToPath(new URL("node_modules/decode-named-character-reference/index.js", import.meta.url)),
    },
  },
  build: {
    outDir: "../src/factwire/workbench",
    emptyOutDir: true,
    target: "es2022",
    // A data: address in a style or script would need a wider content security policy.
    assetsInlineLimit: 0,
    // One file of styles, fetched with the page: a style that failed to come is never asked for again.
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    sourcemap: false,
    reportCompressedSize: false,
  },
  server: {
    host: "127.0.0.1",
    port: 5199,
    strictPort: true,
    proxy: { "/v1": { target: process.env.FACTWIRE_EDGE ?? "http://127.0.0.1:8787", ws: true } },
  },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
