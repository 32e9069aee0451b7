import type { Export } from '../../domain/archives/exports.js'

export function presentExport(archiveExport: Export) {
  return {
    id: archiveExport.uid,
    kind: archiveExport.kind,
    state: archiveExport.state,
    section: archiveExport.section,
    done: archiveExport.done,
    bytes: archiveExport.bytes,
    sha256: archiveExport.sha256,
    left_out: archiveExport.leftOut,
    error: archiveExport.error,
    created_at: archiveExport.createdAt.toISOString(),
    finished_at: archiveExport.finishedAt?.toISOString() ?? null,
    expires_at: archiveExport.expiresAt?.toISOString() ?? null,
  }
}
