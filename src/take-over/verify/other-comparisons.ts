import {
  actualTime,
  address,
  author,
  type Comparison,
  comparisonOf,
  content,
  expectedGuid,
  expectedTime,
  isNotSkipped,
} from './comparisons.js'

/** Of each of these tables, a sample is compared: at least 1 000 rows, or all of a smaller table. */
const SAMPLED_COMPARISONS: readonly Comparison[] = [
  comparisonOf(
    'pods',
    `select pods.id, ${content('lower(trim(host))', 'case when coalesce(port, -1) in (-1, 0, 80) then 443 else port end')}
     from take_over.pods where ${isNotSkipped('pods')}`,
    `select pods.id, ${content('host::text', 'port')} from pods where exists (select from take_over.pods as source where source.id = pods.id)`,
  ),
  comparisonOf(
    'polls',
    `select polls.id, ${content('status_message_id', 'question')} from take_over.polls where ${isNotSkipped('polls')}`,
    `select polls.id, ${content('post_id', 'question')} from polls`,
  ),
  comparisonOf(
    'poll_answers',
    `select poll_answers.id, ${content('poll_id', 'answer')} from take_over.poll_answers where ${isNotSkipped('poll_answers')}`,
    `select poll_answers.id, ${content('poll_id', 'answer')} from poll_answers`,
  ),
  comparisonOf(
    'locations',
    `select status_message_id as id, ${content(`coalesce(locations.address, '')`, 'lat', 'lng')} from take_over.locations where ${isNotSkipped('locations')}`,
    `select post_id as id, ${content('locations.address', 'lat', 'lng')} from locations`,
  ),
  comparisonOf(
    'participations',
    `select participations.id, ${content(author('author_id'), 'target_id', 'greatest(count, 1)')} from take_over.participations where ${isNotSkipped('participations')}`,
    `select participations.id, ${content(address('author_id'), 'post_id', 'count')} from participations`,
  ),
  comparisonOf(
    'tags',
    `select tags.id, ${content('lower(name)')} from take_over.tags where ${isNotSkipped('tags')}`,
    `select tags.id, ${content('name::text')} from tags`,
  ),
  comparisonOf(
    'taggings',
    `select taggings.id, ${content('taggable_type', 'taggable_id', 'lower(tags.name)')}
     from take_over.taggings join take_over.tags on tags.id = tag_id where ${isNotSkipped('taggings')}`,
    `select taggings.id, ${content(`case when post_id is null then 'Comment' else 'Post' end::text`, 'coalesce(post_id, comment_id)', 'tags.name::text')}
     from taggings join tags on tags.id = tag_id`,
  ),
  comparisonOf(
    'mentions',
    `select mentions.id, ${content('mentions_container_type', 'mentions_container_id', author('person_id'))} from take_over.mentions where ${isNotSkipped('mentions')}`,
    `select mentions.id, ${content(`case when post_id is null then 'Comment' else 'Post' end::text`, 'coalesce(post_id, comment_id)', address('person_id'))} from mentions`,
  ),
  comparisonOf(
    'conversations',
    `select conversations.id, ${content(expectedGuid('conversations'), author('author_id'), `case when subject ~ '\\S' then subject else 'No subject' end`, expectedTime('conversations'))}
     from take_over.conversations where ${isNotSkipped('conversations')}`,
    `select conversations.id, ${content('conversations.guid', address('author_id'), 'subject', actualTime('conversations.created_at'))} from conversations`,
  ),
  comparisonOf(
    'notification_actors',
    `select notification_actors.id, ${content('notification_id', author('person_id'))} from take_over.notification_actors where ${isNotSkipped('notification_actors')}`,
    `select notification_actors.id, ${content('notification_id', address('person_id'))} from notification_actors`,
  ),
  comparisonOf(
    'reports',
    `select reports.id, ${content('user_id', 'item_type', 'item_id', `coalesce(text, '')`, 'reviewed is true')} from take_over.reports where ${isNotSkipped('reports')}`,
    `select reports.id, ${content('user_id', `case when post_id is null then 'Comment' else 'Post' end::text`, 'coalesce(post_id, comment_id)', 'reason', 'reviewed_at is not null')} from reports`,
  ),
  comparisonOf(
    'o_auth_applications',
    `select applications.id, ${content('client_id', 'client_secret', 'client_name', 'array(select jsonb_array_elements_text(redirect_uris))')}
     from take_over.o_auth_applications as applications where ${isNotSkipped('o_auth_applications', 'applications.id')}`,
    `select clients.id, ${content('client_id::text', 'secret_hash', 'name', 'redirect_uris')} from clients`,
  ),
  comparisonOf(
    'authorizations',
    `select authorizations.id, ${content('user_id', 'o_auth_application_id')} from take_over.authorizations where ${isNotSkipped('authorizations')}`,
    `select authorizations.id, ${content('user_id', 'client_id')} from authorizations`,
  ),
].map((comparison) => ({ ...comparison, sampled: comparison.name }))

/** Small tables, and tables without an id of their own. */
const WHOLE_COMPARISONS: readonly Comparison[] = [
  comparisonOf(
    'e-mail addresses',
    `select users.id, email as content from take_over.users
     where email <> '' and email !~ '^deletedaccount_.*@example\\.org$' and ${isNotSkipped('users')} and not ${hasDoubledEmailSql()}`,
    `select users.id, email as content from users where email is not null and not ${hasDoubledEmailSql()}`,
  ),
  comparisonOf(
    'user_preferences',
    `select distinct user_id || ' ' || email_type as id, '' as content from take_over.user_preferences where ${isNotSkipped('user_preferences')}`,
    `select user_id || ' ' || kind as id, '' as content from mail_preferences where delivery = 'never'`,
  ),
  comparisonOf(
    'blocks',
    `select user_id || ' ' || ${author('person_id')} as id, '' as content from take_over.blocks where ${isNotSkipped('blocks')}`,
    `select user_id || ' ' || ${address('person_id')} as id, '' as content from blocks`,
  ),
  comparisonOf(
    'tag_followings',
    `select user_id || ' ' || lower(name) as id, '' as content from take_over.tag_followings join take_over.tags on tags.id = tag_id
     where ${isNotSkipped('tag_followings')}`,
    `select user_id || ' ' || name as id, '' as content from tag_followings join tags on tags.id = tag_id`,
  ),
  comparisonOf(
    'account_migrations',
    `select ${author('old_person_id')} as id, ${author('new_person_id')} as content from take_over.account_migrations where ${isNotSkipped('account_migrations')}`,
    `select ${address('old_person_id')} as id, ${address('new_person_id')} as content from account_migrations`,
  ),
  ...(['post', 'photo'] as const).map((name) =>
    comparisonOf(
      `${name}_aspects`,
      `select shareable_id || ' ' || aspect_id as id, '' as content from take_over.aspect_visibilities
       where shareable_type = '${name === 'post' ? 'Post' : 'Photo'}' and ${isNotSkipped('aspect_visibilities')}`,
      `select ${name}_id || ' ' || aspect_id as id, '' as content from ${name}_aspects`,
    ),
  ),
]

/** Another account has the address, perhaps in another case; only one of them keeps it. */
function hasDoubledEmailSql(): string {
  return `users.id in (
    select one.id from take_over.users as one join take_over.users as other
      on lower(other.email) = lower(one.email) and other.id <> one.id
    where one.email <> ''
  )`
}

/** The comparisons of sampled tables and of small tables. */
export const OTHER_COMPARISONS: readonly Comparison[] = [...SAMPLED_COMPARISONS, ...WHOLE_COMPARISONS]
