import type { KeyObject } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { entityToJson } from '../../../src/protocol/entities/entity-json.js'
import type { ReshareEntity, StatusMessageEntity } from '../../../src/protocol/entities/posts.js'
import type { CommentEntity, LikeEntity, PollParticipationEntity } from '../../../src/protocol/entities/relayables.js'
import type { FakePerson } from './fake-pods.js'

type Relayable = CommentEntity | LikeEntity | PollParticipationEntity
type Members = Readonly<Record<string, unknown>>

/** An archive of diaspora*, version 2.0, with the given members. */
export function archiveOf(
  owner: Pick<FakePerson, 'address' | 'privateKey'>,
  { user = {}, others = [] }: { readonly user?: Members; readonly others?: readonly unknown[] } = {},
): { readonly version: string; readonly user: Members; readonly others_data: Members } {
  const [username = ''] = owner.address.split('@')
  return {
    version: '2.0',
    user: {
      username,
      email: `${username}@mail.example`,
      private_key: privateKeyPem(owner.privateKey),
      profile: {
        entity_type: 'profile',
        entity_data: { author: owner.address, first_name: 'Old', last_name: 'Name', bio: 'My *bio*', searchable: true },
      },
      contact_groups: [],
      contacts: [],
      posts: [],
      followed_tags: [],
      post_subscriptions: [],
      relayables: [],
      ...user,
    },
    others_data: { relayables: others },
  }
}

/** A private key in the format of diaspora*. */
export function privateKeyPem(key: KeyObject): string {
  return key.export({ type: 'pkcs1', format: 'pem' }).toString()
}

/** A post in the format of an archive. */
export function archivedPost(entity: StatusMessageEntity | ReshareEntity, more: Members = {}): Members {
  const isPublic = entity.type === 'reshare' || entity.public
  const audience = isPublic ? { subscribed_pods_uris: ['https://old.example'] } : { subscribed_users_ids: [] }
  return { ...audience, ...more, ...entityToJson(entity) }
}

/** A relayable of the owner in the format of an archive, without a signature. */
export function archivedRelayable(entity: Relayable): Members {
  const { entity_data, ...rest } = entityToJson(entity)
  const { author_signature: _, ...data } = entity_data
  return { ...rest, entity_data: data }
}

export function archivedContact(address: string, fields: Members = {}): Members {
  return { account_id: address, sharing: true, receiving: true, contact_groups_membership: [], ...fields }
}

/** Writes an archive as a gzip file. */
export async function writeArchiveFile(file: string, archive: unknown): Promise<string> {
  await writeFile(file, gzipSync(typeof archive === 'string' ? archive : JSON.stringify(archive)))
  return file
}
