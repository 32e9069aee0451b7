import type { Import } from '../../domain/archives/imports.js'

export function presentImport({ uid, oldAddress, options, createdAt, finishedAt, counts, ...found }: Import) {
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
