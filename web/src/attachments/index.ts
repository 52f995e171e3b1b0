export { AttachButton, takesFiles } from "./AttachButton";
export { partsOf, type AssetPart, type Attachment } from "./attachment";
export { Chips, NamedRefs } from "./Chips";
export { forgetAttachments, useAttachments, type Attachments } from "./useAttachments";
