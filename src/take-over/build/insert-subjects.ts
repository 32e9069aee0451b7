import type pg from 'pg'
import { determineSector } from '../../domain/accounts/clients.js'
import { isUrl } from '../../protocol/is-url.js'

interface PairwiseRow {
  readonly userId: number
  readonly subject: string
  readonly identifier: string
  readonly redirectUris: string[]
  readonly sectorUri: string | null
}

/** The pairwise subjects of diaspora*, for the sectors that this pod determines. */
export async function insertSubjects(session: pg.Client): Promise<void> {
  const { rows } = await session.query<PairwiseRow>(SELECT_SUBJECTS_SQL)
  const subjects = rows.flatMap(({ userId, subject, identifier, redirectUris, sectorUri }) => {
    if (identifierOf(redirectUris, sectorUri) !== identifier) return []
    const metadata = { ...PAIRWISE, ...(sectorUri !== null && { sector_identifier_uri: sectorUri }) }
    return [{ userId, subject, sector: determineSector({ metadata, redirectUris }) }]
  })
  await session.query(
    `insert into pairwise_subjects (user_id, sector, subject)
     select * from unnest($1::bigint[], $2::text[], $3::text[]) on conflict (user_id, sector) do nothing`,
    [
      subjects.map(({ userId }) => userId),
      subjects.map(({ sector }) => sector),
      subjects.map(({ subject }) => subject),
    ],
  )
}

const PAIRWISE = {
  application_type: 'web',
  token_endpoint_auth_method: 'client_secret_basic',
  subject_type: 'pairwise',
} as const

/** The name of a sector at diaspora*: the whole document address, else the host of the first redirect URI without its port. */
function identifierOf(redirectUris: readonly string[], sectorUri: string | null): string | undefined {
  if (sectorUri !== null) return sectorUri
  const [first] = redirectUris
  return first !== undefined && isUrl(first) ? new URL(first).hostname : undefined
}

const SELECT_SUBJECTS_SQL = `
  select users.id::float as "userId", source.guid as subject, source.identifier, clients.redirect_uris as "redirectUris",
    clients.metadata ->> 'sector_identifier_uri' as "sectorUri"
  from take_over.ppid as source
  join users on users.id = source.user_id and users.closed_at is null
  join authorizations on authorizations.user_id = users.id
  join clients on clients.id = authorizations.client_id and clients.metadata ->> 'subject_type' = 'pairwise'
  where source.guid <> ''
  order by source.id`
