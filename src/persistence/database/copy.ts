import type { Readable } from 'node:stream'
import type pg from 'pg'
import { from, to } from 'pg-copy-streams'

/** The rows of `copy … to stdout`, in the text format. */
export function copyOut(session: pg.Client, statement: string): Readable {
  return session.query(to(statement))
}

/** Takes the rows for `copy … from stdin`. `rowCount` is known when it has finished. */
export function copyIn(session: pg.Client, statement: string): ReturnType<typeof from> {
  return session.query(from(statement))
}
