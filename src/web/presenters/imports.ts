import type { ListedImport, ReceivedUpload } from '../../domain/archives/imports.js'

export function presentArchiveImport({
  uid,
  oldAddress,
  options,
  createdAt,
  finishedAt,
  counts,
  ...found
}: ListedImport) {
  return {
    id: uid,
    state: found.state,
    old_address: oldAddress,
    identity: found.identity,
    moves: options.move,
    phase: found.phase,
    sections: counts,
    error: found.error,
    created_at: createdAt.toISOString(),
    finished_at: finishedAt?.toISOString() ?? null,
  }
}

/** An archive whose import has not begun: what the check says of it, once there is a report. */
export function presentUpload({ uid, state, report, error, createdAt }: ReceivedUpload) {
  const { old_address, identity, sections } = Object(report)
  return {
    id: uid,
    state,
    old_address: old_address ?? null,
    identity: identity ?? null,
    moves: false,
    phase: 'check',
    sections: sections ?? {},
    error,
    created_at: createdAt.toISOString(),
    finished_at: null,
  }
}
