import type { Export } from '../../domain/archives/exports.js'

export function presentExport(found: Export) {
  return {
    id: found.uid,
    kind: found.kind,
    state: found.state,
    section: found.section,
    done: found.done,
    bytes: found.bytes,
    sha256: found.sha256,
    left_out: found.leftOut,
    error: found.error,
    created_at: found.createdAt.toISOString(),
    finished_at: found.finishedAt?.toISOString() ?? null,
    expires_at: found.expiresAt?.toISOString() ?? null,
  }
}
