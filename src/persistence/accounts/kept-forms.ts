import type { Knex } from 'knex'

/** A form that was sent, kept while its user proves who they are. */
export interface KeptForm {
  readonly path: string
  /** Without passwords and codes. */
  readonly fields: Readonly<Record<string, string | readonly string[]>>
}

interface FormKey {
  readonly idHash: Buffer
  readonly sessionUid: string
}

/** Keeps a form in place of an earlier one of the same session. */
export async function insertKeptForm(
  db: Knex,
  { idHash, sessionUid }: FormKey,
  { path, fields }: KeptForm,
  seconds: number,
): Promise<void> {
  await db('kept_forms').where({ sessionUid }).delete()
  await db('kept_forms').insert({
    idHash,
    sessionUid,
    path,
    fields: JSON.stringify(fields),
    expiresAt: db.raw('now() + make_interval(secs => ?)', [seconds]),
  })
}

/** Undefined: there is none, or another session sent it. */
export async function findKeptForm(db: Knex, { idHash, sessionUid }: FormKey): Promise<KeptForm | undefined> {
  return db('kept_forms').where({ idHash, sessionUid }).where('expiresAt', '>', db.fn.now()).first('path', 'fields')
}
