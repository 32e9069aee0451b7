/**
 * How a column is staged. `json` and `yaml` become JSON; `sealed` is encrypted with the secret key of the pod; `hashed` becomes SHA-256.
 * The other types are those of the source.
 */
export type ColumnType = 'int' | 'bool' | 'text' | 'time' | 'date' | 'json' | 'yaml' | 'sealed' | 'hashed'

export interface SourceTable {
  readonly name: string
  /** The column by which blocks are made. It is unique. */
  readonly key: string
  /** Columns that an older or newer release lacks are staged as null, or as their default. */
  readonly columns: Readonly<Record<string, ColumnType>>
  readonly defaults?: Readonly<Record<string, string>>
}

const times = { created_at: 'time', updated_at: 'time' } as const
const signature = { author_signature: 'text', signature_order_id: 'int', additional_data: 'yaml' } as const

/** What is read of each table of diaspora*. Columns without use here, as addresses of sign-ins and reset tokens, stay where they are. */
export const SOURCE_TABLES: readonly SourceTable[] = [
  table('pods', {
    ...{ host: 'text', ssl: 'bool', port: 'int', status: 'int', checked_at: 'time', offline_since: 'time' },
    ...{ software: 'text', error: 'text', blocked: 'bool', scheduled_check: 'bool', ...times },
  }),
  table('users', {
    ...{ username: 'text', serialized_private_key: 'sealed', email: 'text', encrypted_password: 'sealed' },
    ...{ unconfirmed_email: 'text', locked_at: 'time', getting_started: 'bool', disable_mail: 'bool' },
    ...{ language: 'text', color_theme: 'text', show_community_spotlight_in_stream: 'bool', auto_follow_back: 'bool' },
    ...{ auto_follow_back_aspect_id: 'int', post_default_public: 'bool', hidden_shareables: 'yaml' },
    ...{ last_seen: 'time', current_sign_in_at: 'time', last_sign_in_at: 'time', invited_by_id: 'int' },
    ...{ remove_after: 'time', otp_required_for_login: 'bool', plain_otp_secret: 'sealed' },
    ...{ consumed_timestep: 'int', otp_backup_codes: 'sealed', ...times },
  }),
  table('people', {
    ...{ guid: 'text', diaspora_handle: 'text', serialized_public_key: 'text', owner_id: 'int', pod_id: 'int' },
    ...{ closed_account: 'bool', fetch_status: 'int', ...times },
  }),
  table('profiles', {
    ...{ person_id: 'int', first_name: 'text', last_name: 'text', image_url: 'text', image_url_small: 'text' },
    ...{ image_url_medium: 'text', birthday: 'date', gender: 'text', location: 'text', bio: 'text' },
    ...{ searchable: 'bool', nsfw: 'bool', public_details: 'bool', ...times },
  }),
  table('roles', { person_id: 'int', name: 'text' }),
  table('account_deletions', { person_id: 'int', completed_at: 'time' }),
  table('account_migrations', {
    ...{
      old_person_id: 'int',
      new_person_id: 'int',
      completed_at: 'time',
      signature: 'text',
      remote_photo_path: 'text',
    },
  }),
  table('contacts', { user_id: 'int', person_id: 'int', sharing: 'bool', receiving: 'bool', ...times }),
  table('aspects', { name: 'text', user_id: 'int', order_id: 'int', post_default: 'bool', ...times }),
  table('aspect_memberships', { aspect_id: 'int', contact_id: 'int', ...times }),
  table('blocks', { user_id: 'int', person_id: 'int' }),
  table('user_preferences', { email_type: 'text', user_id: 'int' }),
  table('o_embed_caches', { url: 'text', data: 'yaml' }),
  table('open_graph_caches', { title: 'text', image: 'text', url: 'text', description: 'text', video_url: 'text' }),
  table('posts', {
    ...{ author_id: 'int', public: 'bool', guid: 'text', type: 'text', text: 'text', provider_display_name: 'text' },
    ...{ root_guid: 'text', likes_count: 'int', comments_count: 'int', reshares_count: 'int', interacted_at: 'time' },
    ...{ o_embed_cache_id: 'int', open_graph_cache_id: 'int', ...times },
  }),
  table('photos', {
    ...{ author_id: 'int', public: 'bool', pending: 'bool', guid: 'text', text: 'text', remote_photo_path: 'text' },
    ...{ remote_photo_name: 'text', processed_image: 'text', unprocessed_image: 'text', status_message_guid: 'text' },
    ...{ height: 'int', width: 'int', ...times },
  }),
  table('aspect_visibilities', { shareable_id: 'int', shareable_type: 'text', aspect_id: 'int' }),
  table('share_visibilities', { shareable_id: 'int', shareable_type: 'text', user_id: 'int', hidden: 'bool' }),
  table('locations', { address: 'text', lat: 'text', lng: 'text', status_message_id: 'int' }),
  table('polls', { question: 'text', status_message_id: 'int', guid: 'text', ...times }),
  table('poll_answers', { answer: 'text', poll_id: 'int', guid: 'text', vote_count: 'int' }),
  table('poll_participations', { poll_answer_id: 'int', author_id: 'int', poll_id: 'int', guid: 'text', ...times }),
  table('comments', {
    ...{ text: 'text', commentable_id: 'int', commentable_type: 'text', author_id: 'int', guid: 'text' },
    ...{ likes_count: 'int', ...times },
  }),
  table('likes', {
    ...{ positive: 'bool', target_id: 'int', target_type: 'text', author_id: 'int', guid: 'text', ...times },
  }),
  { name: 'comment_signatures', key: 'comment_id', columns: { comment_id: 'int', ...signature } },
  { name: 'like_signatures', key: 'like_id', columns: { like_id: 'int', ...signature } },
  {
    name: 'poll_participation_signatures',
    key: 'poll_participation_id',
    columns: { poll_participation_id: 'int', ...signature },
  },
  table('signature_orders', { order: 'text' }),
  table('participations', {
    ...{ guid: 'text', target_id: 'int', target_type: 'text', author_id: 'int', count: 'int', ...times },
  }),
  table('tags', { name: 'text' }),
  table('taggings', { tag_id: 'int', taggable_id: 'int', taggable_type: 'text', context: 'text', created_at: 'time' }),
  table('tag_followings', { tag_id: 'int', user_id: 'int', ...times }),
  table('mentions', { mentions_container_id: 'int', mentions_container_type: 'text', person_id: 'int' }),
  table('conversations', { subject: 'text', guid: 'text', author_id: 'int', ...times }),
  table('conversation_visibilities', { conversation_id: 'int', person_id: 'int', unread: 'int', ...times }),
  table('messages', { conversation_id: 'int', author_id: 'int', guid: 'text', text: 'text', ...times }),
  table('notifications', {
    ...{
      type: 'text',
      target_type: 'text',
      target_id: 'int',
      recipient_id: 'int',
      unread: 'bool',
      guid: 'text',
      ...times,
    },
  }),
  table('notification_actors', { notification_id: 'int', person_id: 'int' }),
  table('reports', {
    ...{ item_id: 'int', item_type: 'text', text: 'text', reviewed: 'bool', user_id: 'int', ...times },
  }),
  table('o_auth_applications', {
    ...{
      client_id: 'text',
      client_secret: 'hashed',
      client_name: 'text',
      redirect_uris: 'json',
      response_types: 'json',
    },
    ...{ grant_types: 'json', contacts: 'json', jwks: 'json', application_type: 'text', ppid: 'bool' },
    ...{ token_endpoint_auth_method: 'text', logo_uri: 'text', client_uri: 'text', policy_uri: 'text' },
    ...{ tos_uri: 'text', sector_identifier_uri: 'text', jwks_uri: 'text', ...times },
  }),
  table('authorizations', {
    ...{ user_id: 'int', o_auth_application_id: 'int', refresh_token: 'hashed', scopes: 'json', ...times },
  }),
  table('o_auth_access_tokens', { authorization_id: 'int', token: 'hashed', expires_at: 'time', created_at: 'time' }),
  table('ppid', { guid: 'text', identifier: 'text', user_id: 'int' }),
]

/** Tables of which nothing is kept. Their rows are counted. */
export const TABLES_LEFT_OUT = ['services', 'invitation_codes', 'references'] as const

function table(name: string, columns: SourceTable['columns']): SourceTable {
  return { name, key: 'id', columns: { id: 'int', ...columns } }
}
