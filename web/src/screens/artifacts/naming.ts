import type { ArtifactState, ArtifactVersion } from "../../api/generated/projection";

export function nameOf(artifact: ArtifactState): string {
  return artifact.title ?? artifact.path ?? artifact.artifactId;
}

/** All versions in the order of their facts; what has none told apart is one version without a name. */
export function versionsOf(artifact: ArtifactState): ArtifactVersion[] {
  if (artifact.versions.length > 0) return artifact.versions;
  const { contentRef = null, previewRef = null, diffRef = null } = artifact;
  return [{ versionId: "", eventId: "", contentRef, previewRef, diffRef, createdAt: artifact.createdAt ?? null }];
}

export function versionWords(version: ArtifactVersion, at: number): string {
  if (version.versionId === "") return "Only version";
  return version.versionId === String(at + 1) ? `Version ${at + 1}` : `Version ${at + 1} (${version.versionId})`;
}
