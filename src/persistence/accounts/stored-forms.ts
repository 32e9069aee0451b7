import type { Knex } from 'knex'

/** A form that was sent, kept while its user proves who they are. */
export interface StoredForm {
  readonly path: string
  /** Fields of the form, without passwords and codes. */
  readonly fields: Readonly<Record<string, string | readonly string[]>>
}

interface FormKey {
  readonly idHash: Buffer
  readonly sessionUid: string
}

/** Keeps a form in place of an earlier one of the same session. */
export async function insertStoredForm(
  db: Knex,
  { idHash, sessionUid }: FormKey,
  { path, fields }: StoredForm,
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
export async function findStoredForm(db: Knex, { idHash, sessionUid }: FormKey): Promise<StoredForm | undefined> {
  return db('kept_forms').where({ idHash, sessionUid }).where('expiresAt', '>', db.fn.now()).first('path', 'fields')
}
