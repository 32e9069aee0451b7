import { loadPrivateKey } from '../../domain/accounts/private-keys.js'
import { getSettings } from '../../domain/accounts/settings.js'
import { inChunks } from '../../jobs/chunks.js'
import { type LoadPause, openLoadPause } from '../../jobs/inbound/pause-under-load.js'
import { findArchivedMigrations } from '../../persistence/archives/account-moves.js'
import {
  type ArchivedPod,
  archivedContacts,
  findArchivedLists,
  findFollowerPods,
} from '../../persistence/archives/archived-account.js'
import {
  type ArchivedPost,
  type ArchivedRelayableKind,
  archivedPostIds,
  archivedPosts,
  ownRelayableGuids,
  subscribedPostGuids,
} from '../../persistence/archives/archived-content.js'
import {
  type ArchivedConversation,
  type ArchivedMessage,
  archivedConversations,
  findArchivedMessages,
} from '../../persistence/archives/archived-conversations.js'
import { archivedPhotos } from '../../persistence/archives/archived-photos.js'
import { User } from '../../persistence/models/user.js'
import { type EntityJson, entityToJson } from '../../protocol/entities/entity-json.js'
import type { ReshareEntity, StatusMessageEntity } from '../../protocol/entities/posts.js'
import type { Services } from '../../services/services.js'
import { podOrigin } from '../discovery/pod-origin.js'
import { profileEntity } from '../outbound/person-entities.js'
import { buildPhotoEntity, postEntities } from '../outbound/post-entities.js'
import { streamedArray, streamedObject, writeObject } from './archive-format.js'
import { archiveOthersRelayables, archiveOwnRelayables } from './archived-relayables.js'

export type ArchiveDependencies = Pick<Services, 'config' | 'db' | 'jobs' | 'crypto' | 'secrets' | 'locales'>

export interface ArchiveOptions {
  readonly username: string
  /** False: the archive can be read, but the account cannot be moved with it. */
  readonly shouldIncludeKey: boolean
  /** Posts that are newer are left out. */
  readonly upTo: Date
  /** The part of the time in which the archive is written. Default: all. */
  readonly share?: number
  readonly signal?: AbortSignal
  reportProgress?(section: string, done: number): void
  /** Relayables of others that cannot be signed. */
  countLeftOut?(count: number): void
}

/** Rows that are read at once. */
const PAGE = 500
/** Conversations that are read at once, with all their messages. */
const CONVERSATIONS_BATCH_SIZE = 20
/** Posts that are written at once, each with all its readers, and posts whose comments and likes are read at once. */
const POST_BATCH_SIZE = 100

const RELAYABLE_KINDS: readonly ArchivedRelayableKind[] = ['comment', 'like', 'likeOfComment', 'vote']

interface Owner {
  readonly user: User
  readonly personId: number
  readonly address: string
}

/**
 * Writes the archive of an account in the format of diaspora*, version 2.0, as pieces of JSON text. Members of this pod stand where
 * readers of that format skip them, never inside `entity_data`.
 */
export async function* writeArchive(source: ArchiveDependencies, options: ArchiveOptions): AsyncGenerator<string> {
  const user = await User.byUsername(source.db, options.username)
  if (user?.person === undefined) throw new Error(`There is no account ${options.username}.`)
  const owner = { user, personId: user.personId, address: user.person.address }
  const archive = new ArchiveSections(source, owner, options)
  yield* writeObject([
    ['version', '2.0'],
    ['user', streamedObject(await archive.userMembers())],
    ['others_data', streamedObject([['relayables', archive.othersRelayables()]])],
  ])
  yield '\n'
}

class ArchiveSections {
  readonly #source: ArchiveDependencies
  readonly #loadPause: LoadPause
  readonly #owner: Owner
  readonly #options: ArchiveOptions

  constructor(source: ArchiveDependencies, owner: Owner, options: ArchiveOptions) {
    this.#source = source
    this.#loadPause = openLoadPause(source.jobs, options.share)
    this.#owner = owner
    this.#options = options
  }

  async userMembers(): Promise<readonly (readonly [string, unknown])[]> {
    const { user, personId } = this.#owner
    const aspects = await user.$relatedQuery('aspects', this.#source.db).orderBy(['position', 'id'])
    const lists = await findArchivedLists(this.#source.db, user.id)
    return [
      ['username', user.username],
      ['email', user.email ?? `${user.username}@${mailHost(this.#source.config.host)}`],
      ['language', user.language],
      ['private_key', this.#options.shouldIncludeKey ? await this.#privateKey() : ''],
      ['disable_mail', !user.mailEnabled],
      ['show_community_spotlight_in_stream', false],
      ['auto_follow_back', user.followBackAspectId !== null],
      ['auto_follow_back_aspect', aspects.find(({ id }) => id === user.followBackAspectId)?.name ?? null],
      ['blocks', lists.blocks],
      ['profile', await this.#profile()],
      ['contact_groups', aspects.map(({ name }) => ({ name }))],
      ['contacts', this.#contacts()],
      ['posts', this.#posts()],
      ['followed_tags', lists.followedTags],
      ['post_subscriptions', streamedArray(() => subscribedPostGuids(this.#source.db, personId, PAGE))],
      ['relayables', this.#ownRelayables()],
      // From here on members that only this software reads.
      ['guid', user.person?.guid],
      ['created_at', user.createdAt],
      ['photos', this.#photosWithoutPost()],
      ['conversations', this.#conversations()],
      ['hidden_posts', lists.hiddenPosts],
      ['muted_posts', lists.mutedPosts],
      ['settings', await this.#settings(aspects)],
      ['migrations', await findArchivedMigrations(this.#source.db, personId)],
    ]
  }

  othersRelayables() {
    const { personId } = this.#owner
    return this.#section('others_relayables', async function* (this: ArchiveSections) {
      for await (const posts of archivedPostIds(this.#source.db, this.#postsQuery())) {
        for (const chunk of inChunks(posts, POST_BATCH_SIZE)) {
          const query = { postIds: chunk.map(({ id }) => id), personId, limit: PAGE }
          yield* archiveOthersRelayables(this.#source, query, (count) => this.#options.countLeftOut?.(count))
        }
      }
    })
  }

  #contacts() {
    const userId = this.#owner.user.id
    return this.#section('contacts', async function* (this: ArchiveSections) {
      for await (const page of archivedContacts(this.#source.db, userId, PAGE)) {
        yield page.map(({ address, guid, name, publicKey, sharing, receiving, aspects }) => ({
          sharing,
          receiving,
          following: sharing,
          followed: receiving,
          person_guid: guid,
          person_name: name === '' ? address : name,
          account_id: address,
          public_key: publicKey,
          contact_groups_membership: aspects,
        }))
      }
    })
  }

  #posts() {
    return this.#section('posts', async function* (this: ArchiveSections) {
      const { db, config } = this.#source
      const followers = await findFollowerPods(db, this.#owner.user.id)
      for await (const rows of archivedPosts(db, { ...this.#postsQuery(), limit: POST_BATCH_SIZE })) {
        const entities = await postEntities(
          this.#source,
          rows.map(({ guid }) => guid),
        )
        const byGuid = new Map(entities.map((entity) => [entity.guid, entity]))
        yield rows.flatMap((row) => {
          const entity = byGuid.get(row.guid)
          if (entity === undefined || isRootless(entity)) return [] // deleted in the meantime, or only its root
          return [{ ...audienceOf(row, { followers, url: config.url }), ...withPixels(entityToJson(entity)) }]
        })
      }
    })
  }

  #ownRelayables() {
    return this.#section('relayables', async function* (this: ArchiveSections) {
      for (const kind of RELAYABLE_KINDS) {
        for await (const guids of ownRelayableGuids(this.#source.db, kind, this.#owner.personId, PAGE)) {
          yield await archiveOwnRelayables(this.#source, kind, guids)
        }
      }
    })
  }

  /** Photos that belong to no post, among them the current profile picture. */
  #photosWithoutPost() {
    return this.#section('photos', async function* (this: ArchiveSections) {
      const { personId, address } = this.#owner
      const picture = (await profileEntity(this.#source, personId))?.image_url
      for await (const page of archivedPhotos(this.#source.db, { authorId: personId, postId: null }, PAGE)) {
        yield page.map((photo) => ({
          ...entityToJson(buildPhotoEntity(this.#source, photo, { author: address, postGuid: undefined })),
          ...(picture?.endsWith(photo.name) && { profile_photo: true }),
        }))
      }
    })
  }

  #conversations() {
    return this.#section('conversations', async function* (this: ArchiveSections) {
      const { db } = this.#source
      for await (const page of archivedConversations(db, this.#owner.personId, CONVERSATIONS_BATCH_SIZE)) {
        const messages = await findArchivedMessages(
          db,
          page.map(({ id }) => id),
        )
        yield page.map((conversation) =>
          archivedConversation(
            conversation,
            messages.filter(({ conversationId }) => conversationId === conversation.id),
          ),
        )
      }
    })
  }

  /**
   * The settings of the API without e-mail address and second factor. Aspects have other ids on another pod: they stand by their names
   * too, and only the names are read.
   */
  async #settings(aspects: readonly { readonly id: number; readonly name: string }[]) {
    const settings = await getSettings(this.#source, this.#owner.user.id)
    const nameOf = (id: number | null) => aspects.find((aspect) => aspect.id === id)?.name
    return {
      language: settings.language,
      available_languages: settings.availableLanguages,
      time_zone: settings.timeZone,
      follow_back_aspect_id: settings.followBackAspectId,
      follow_back_aspect: nameOf(settings.followBackAspectId) ?? null,
      default_post_public: settings.defaultPostPublic,
      default_post_aspect_ids: settings.defaultPostAspectIds,
      default_post_aspects: settings.defaultPostAspectIds.flatMap((id) => nameOf(id) ?? []),
      strip_exif: true,
      mail_enabled: settings.mail.enabled,
      mail_kinds: settings.mail.kinds,
      digest_hour: settings.mail.digestHour,
    }
  }

  #postsQuery() {
    return { personId: this.#owner.personId, upTo: this.#options.upTo, limit: PAGE }
  }

  /** A streamed array that reports its progress and stops when the export is stopped. */
  #section(name: string, pages: (this: ArchiveSections) => AsyncGenerator<readonly unknown[]>) {
    return streamedArray(
      async function* (this: ArchiveSections) {
        let done = 0
        for await (const page of pages.call(this)) {
          this.#options.signal?.throwIfAborted()
          await this.#loadPause.wait(this.#options.signal)
          yield page
          done += page.length
          this.#options.reportProgress?.(name, done)
        }
      }.bind(this),
    )
  }

  async #profile() {
    const profile = await profileEntity(this.#source, this.#owner.personId)
    if (profile === undefined) throw new Error(`The account ${this.#owner.user.username} has no profile.`)
    const { full_name: _, ...archived } = profile // diaspora* archives contain the two parts of the name
    return entityToJson(archived)
  }

  async #privateKey(): Promise<string> {
    const key = await loadPrivateKey(this.#source, this.#owner.personId)
    return key.export({ type: 'pkcs1', format: 'pem' }).toString()
  }
}

/** A reshare of a deleted post. The schema of diaspora* wants its root, and would refuse the whole archive. */
function isRootless(entity: StatusMessageEntity | ReshareEntity): boolean {
  return entity.type === 'reshare' && entity.root_guid === undefined
}

/** The schema of diaspora* wants the size of each photo. Old photos have none: 0 stands for unknown. */
function withPixels(post: EntityJson): EntityJson {
  const { photos } = post.entity_data
  if (!Array.isArray(photos)) return post
  const sizedPhotos = photos.map((photo) => ({ ...photo, entity_data: { width: 0, height: 0, ...photo.entity_data } }))
  return { ...post, entity_data: { ...post.entity_data, photos: sizedPhotos } }
}

interface Recipients {
  /** Pods that receive every public post. */
  readonly followers: readonly ArchivedPod[]
  /** URL of this pod. */
  readonly url: string
}

/** The messages are in the conversation, each with its author. */
function archivedConversation(
  { guid, author, subject, createdAt, participants, read }: ArchivedConversation,
  messages: readonly ArchivedMessage[],
) {
  const entity = entityToJson({
    type: 'conversation',
    author,
    guid,
    subject,
    participants,
    created_at: createdAt,
    messages: [],
  })
  const archivedMessages = messages.map((message) =>
    entityToJson({
      type: 'message',
      author: message.author,
      guid: message.guid,
      text: message.text,
      created_at: message.createdAt,
      conversation_guid: guid,
    }),
  )
  return { ...entity, entity_data: { ...entity.entity_data, messages: archivedMessages }, read }
}

/** Who has received a post: the schema wants exactly one of the two lists. */
function audienceOf(post: ArchivedPost, { followers, url }: Recipients) {
  if (!post.public) return { subscribed_users_ids: post.readers, aspects: post.aspects }
  const origins = [...followers, ...post.pods].flatMap((pod) => podOrigin(pod) ?? [])
  return { subscribed_pods_uris: [...new Set([...origins, url])].map((origin) => `${origin}/`) }
}

/** An archive needs an e-mail address; `.invalid` says that there is none. */
function mailHost(host: string): string {
  return /^[^:]+\.[^:]+$/.test(host) ? `${host}.invalid` : 'pod.invalid'
}
