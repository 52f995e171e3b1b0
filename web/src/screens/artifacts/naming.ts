import type { ArtifactState, ArtifactVersion } from "../../api/generated/projection";

export function nameOf(artifact: ArtifactState): string {
  return artifact.title ?? artifact.path ?? artifact.artifactId;
}

/** All versions in the order of their facts; what has none told apart is one version without a name. A diff of no version is of the last one. */
export function versionsOf(artifact: ArtifactState): ArtifactVersion[] {
  const { contentRef = null, previewRef = null, diff = null, diffRef = null, diffTruncated = null } = artifact;
  if (artifact.versions.length > 0) {
    return artifact.versions.map((version) => (version.versionId !== artifact.versionId || hasDiff(version) ? version : { ...version, diff, diffRef, diffTruncated }));
  }
  return [{ versionId: "", eventId: "", contentRef, previewRef, diff, diffRef, diffTruncated, createdAt: artifact.createdAt ?? null }];
}

export function hasDiff(version: ArtifactVersion): boolean {
  return version.diff != null || version.diffRef != null;
}

export function versionWords(version: ArtifactVersion, at: number): string {
  if (version.versionId === "") return "Only version";
  return version.versionId === String(at + 1) ? `Version ${at + 1}` : `Version ${at + 1} (${version.versionId})`;
}
