import { insertSkippedRowsSql, isCopiedSql, settingSql, timeOrNullSql, timeSql } from './sql.js'

/** The payload of a stored token for the authorization server; client, person and scopes come from its authorization. */
function payloadSql(kind: 'AccessToken' | 'RefreshToken', created: string): string {
  const seconds = `extract(epoch from ${timeSql(created)})::bigint`
  return `jsonb_build_object('kind', '${kind}', 'gty', 'authorization_code', 'iat', ${seconds}, 'iiat', ${seconds})`
}

/** Clients and what users have granted them. Of two grants for one client the newest counts; tokens of the others end. */
export const clientStatements: readonly string[] = [
  insertSkippedRowsSql(
    'o_auth_applications',
    `select source.id, case
       when coalesce(source.client_id, '') !~ '^[0-9a-f]{32}$' then 'D08'
       when jsonb_typeof(source.redirect_uris) is distinct from 'array' or jsonb_array_length(source.redirect_uris) = 0 then 'redirect URI'
       when row_number() over (partition by source.client_id order by source.id) > 1 then 'D09'
     end as code from take_over.o_auth_applications as source`,
  ),
  `insert into clients (id, client_id, secret_hash, name, redirect_uris, metadata, api_dialect, created_at, updated_at)
   overriding system value
   select source.id, source.client_id, source.client_secret, source.client_name,
     array(select jsonb_array_elements_text(source.redirect_uris)),
     jsonb_strip_nulls(jsonb_build_object(
       'application_type', case when source.application_type = 'native' then 'native' else 'web' end,
       'token_endpoint_auth_method', case
         when source.token_endpoint_auth_method in ('client_secret_basic', 'none') then source.token_endpoint_auth_method
         else 'client_secret_post' end,
       'subject_type', case when source.ppid then 'pairwise' else 'public' end,
       'logo_uri', nullif(source.logo_uri, ''), 'client_uri', nullif(source.client_uri, ''),
       'policy_uri', nullif(source.policy_uri, ''), 'tos_uri', nullif(source.tos_uri, ''),
       'sector_identifier_uri', nullif(source.sector_identifier_uri, ''), 'jwks_uri', nullif(source.jwks_uri, ''),
       'jwks', case when jsonb_typeof(source.jwks) = 'object' then source.jwks end,
       'contacts', case when jsonb_typeof(source.contacts) = 'array' then source.contacts end
     )), 'diaspora', ${timeSql('source.created_at', 'source.updated_at')}, ${timeSql('source.updated_at', 'source.created_at')}
   from take_over.o_auth_applications as source where ${isCopiedSql('o_auth_applications', 'source.id')}`,
  insertSkippedRowsSql(
    'authorizations',
    `select source.id, case
       when users.id is null or clients.id is null then 'D07'
       when users.closed_at is not null then 'closed'
       when row_number() over (partition by users.id, clients.id order by source.updated_at desc nulls last, source.id desc) > 1 then 'D09'
     end as code
     from take_over.authorizations as source left join users on users.id = source.user_id
     left join clients on clients.id = source.o_auth_application_id`,
  ),
  `insert into authorizations (id, user_id, client_id, grant_id, scopes, created_at, updated_at, last_used_at) overriding system value
   select source.id, source.user_id, source.o_auth_application_id,
     left(encode(sha256(convert_to(${settingSql('subject_key')} || 'grant ' || source.id, 'UTF8')), 'hex'), 43),
     array(
       select name from (
         select jsonb_array_elements_text(case when jsonb_typeof(source.scopes) = 'array' then source.scopes else '[]' end)
         union select 'public:read'
       ) as listed(name) where name = any(current_setting('take_over.scopes')::text[]) order by name
     ),
     ${timeSql('source.created_at', 'source.updated_at')}, ${timeSql('source.updated_at', 'source.created_at')},
     ${timeOrNullSql('used.at')}
   from take_over.authorizations as source
   left join (
     select authorization_id, max(created_at) as at from take_over.o_auth_access_tokens group by authorization_id
   ) as used on used.authorization_id = source.id
   where ${isCopiedSql('authorizations', 'source.id')}`,
  `insert into refresh_tokens (authorization_id, token_hash, payload, expires_at, created_at)
   select source.id, source.refresh_token, ${payloadSql('RefreshToken', 'source.created_at')},
     ${settingSql('built_at')}::timestamptz + interval '400 days', ${timeSql('source.created_at', 'source.updated_at')}
   from take_over.authorizations as source
   where source.refresh_token is not null and ${isCopiedSql('authorizations', 'source.id')} order by source.id
   on conflict (token_hash) do nothing`,
  insertSkippedRowsSql(
    'o_auth_access_tokens',
    `select source.id, case
       when authorizations.id is null or source.token is null then 'D07'
       when source.expires_at is null or ${timeOrNullSql('source.expires_at')} <= ${settingSql('built_at')}::timestamptz then 'expired'
       when row_number() over (partition by source.token order by source.id) > 1 then 'D09'
     end as code
     from take_over.o_auth_access_tokens as source left join authorizations on authorizations.id = source.authorization_id`,
  ),
  `insert into access_tokens (id, authorization_id, token_hash, payload, expires_at, created_at) overriding system value
   select source.id, source.authorization_id, source.token, ${payloadSql('AccessToken', 'source.created_at')},
     ${timeOrNullSql('source.expires_at')}, ${timeSql('source.created_at')}
   from take_over.o_auth_access_tokens as source where ${isCopiedSql('o_auth_access_tokens', 'source.id')}`,
]
