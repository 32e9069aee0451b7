import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** A stored post, comment, profile or message, as filters compare it. */
export interface FilterRow {
  /** Rows are read in descending order of ids: newest first, as they were stored. */
  readonly id: number
  readonly guid: string
  readonly author: string
  readonly isPublic: boolean
  readonly createdAt: Date
  readonly text: string
  /** Question and answers of the poll of a post, the subject of a conversation, or the tags of a profile. */
  readonly more: readonly string[] | null
  /** The name of a person. */
  readonly name: string | null
}

const FILTER_SOURCES = ['posts', 'comments', 'people', 'messages'] as const
export type FilterSource = (typeof FILTER_SOURCES)[number]

const ROWS_SQL: Readonly<Record<FilterSource, string>> = {
  posts: `
    select posts.id, posts.guid, people.address as author, posts.public as "isPublic", posts.created_at as "createdAt", posts.text,
      (
        select array_agg(texts.text) from (
          select polls.question as text from polls where polls.post_id = posts.id
          union all
          select poll_answers.answer from polls join poll_answers on poll_answers.poll_id = polls.id where polls.post_id = posts.id
        ) as texts
      ) as more, null as name
    from posts join people on people.id = posts.author_id
    where posts.id < :before and posts.type = 'StatusMessage' and (posts.public or :withPrivate)
    order by posts.id desc limit :limit`,
  comments: `
    select comments.id, comments.guid, people.address as author, posts.public as "isPublic", comments.created_at as "createdAt",
      comments.text, null as more, null as name
    from comments join posts on posts.id = comments.post_id join people on people.id = comments.author_id
    where comments.id < :before and (posts.public or :withPrivate)
    order by comments.id desc limit :limit`,
  people: `
    select people.id, people.guid, people.address as author, true as "isPublic", profiles.updated_at as "createdAt",
      profiles.bio as text, profiles.tags as more, people.name
    from people join profiles on profiles.person_id = people.id
    where people.id < :before and people.closed_at is null
    order by people.id desc limit :limit`,
  messages: `
    select messages.id, messages.guid, people.address as author, false as "isPublic", messages.created_at as "createdAt",
      messages.text, null as more, null as name
    from messages join people on people.id = messages.author_id
    where messages.id < :before and :withPrivate
    order by messages.id desc limit :limit`,
}

/** Reads a chunk of rows before an id. Each statement walks the primary key of its table. */
export async function readFilterRows(
  db: Knex,
  source: FilterSource,
  chunk: { readonly before: number; readonly withPrivate: boolean; readonly limit: number },
): Promise<readonly FilterRow[]> {
  return queryRows<FilterRow>(db, ROWS_SQL[source], { ...chunk })
}
