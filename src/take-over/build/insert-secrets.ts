import type pg from 'pg'
import { makeTotpSecret } from '../../domain/accounts/factors/totp.js'
import type { Secrets } from '../../services/services.js'
import { readYaml } from '../staging/read-yaml.js'

/** Users of one statement. */
const BATCH_SIZE = 500

interface StagedSecrets {
  readonly id: number
  readonly privateKey: Buffer | null
  readonly password: Buffer | null
  readonly needsFactor: boolean
  readonly totpSecret: Buffer | null
  readonly totpStep: number | null
  readonly backupCodes: Buffer | null
}

/**
 * The secrets of all accounts: password hashes as they were, and for accounts with a second factor its secret and backup codes. Private
 * keys and TOTP secrets are sealed as they stay.
 */
export async function insertSecrets(session: pg.Client, secrets: Secrets): Promise<void> {
  for (let after = 0; ; ) {
    const { rows: staged } = await session.query<StagedSecrets>(SELECT_SECRETS_SQL, [after, BATCH_SIZE])
    const last = staged.at(-1)
    if (last === undefined) return
    const rows = staged.map((row) => withFactor(row, secrets))
    after = last.id
    await session.query(INSERT_USER_SECRETS_SQL, [
      rows.map(({ id }) => id),
      rows.map(({ id, password }) => password && secrets.decrypt(password, `take-over ${id}`)),
      rows.map(({ id, privateKey }) => privateKey ?? secrets.encrypt('', `user ${id}`)),
      rows.map(({ totpSecret }) => totpSecret),
      rows.map(({ totpStep }) => totpStep),
    ])
    const codes = rows.flatMap(({ id, totpSecret, backupCodes }) =>
      totpSecret === null || backupCodes === null
        ? []
        : readCodes(secrets.decrypt(backupCodes, `take-over ${id}`)).map((hash) => ({ id, hash: Buffer.from(hash) })),
    )
    await session.query(
      `insert into recovery_codes (user_id, code_hash, bcrypt)
       select *, true from unnest($1::bigint[], $2::bytea[]) on conflict do nothing`,
      [codes.map(({ id }) => id), codes.map(({ hash }) => hash)],
    )
  }
}

/**
 * Gives an account that needs a second factor a random secret if its own cannot be read. The password alone must not be enough to sign in;
 * the backup codes stay valid.
 */
function withFactor(row: StagedSecrets, secrets: Secrets): StagedSecrets {
  if (!row.needsFactor || row.totpSecret !== null) return row
  return { ...row, totpSecret: secrets.encrypt(makeTotpSecret(), `totp ${row.id}`) }
}

const SELECT_SECRETS_SQL = `
  select source.id::float as id, source.serialized_private_key as "privateKey", source.encrypted_password as password,
    source.otp_required_for_login is true as "needsFactor",
    case when source.otp_required_for_login then source.plain_otp_secret end as "totpSecret",
    source.consumed_timestep::float as "totpStep", source.otp_backup_codes as "backupCodes"
  from take_over.users as source join users on users.id = source.id
  where source.id > $1 order by source.id limit $2`

const INSERT_USER_SECRETS_SQL = `
  insert into user_secrets (user_id, password_hash, sealed_private_key, bound, sealed_totp_secret, totp_confirmed_at, totp_last_step)
  select id, password, private_key, true, totp_secret,
    case when totp_secret is not null then date_trunc('milliseconds', current_setting('take_over.built_at')::timestamptz) end,
    case when totp_secret is not null then totp_step end
  from unnest($1::bigint[], $2::text[], $3::bytea[], $4::bytea[], $5::bigint[])
    as input(id, password, private_key, totp_secret, totp_step)`

/** The backup codes of an account: a YAML list of bcrypt hashes. */
function readCodes(yaml: string): readonly string[] {
  const list = readYaml(yaml)
  return Array.isArray(list) ? list.filter((item): item is string => typeof item === 'string') : []
}
