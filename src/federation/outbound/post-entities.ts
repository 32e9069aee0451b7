import { photoBaseUrl } from '../../domain/photos/photos.js'
import { Photo } from '../../persistence/models/photo.js'
import { Post } from '../../persistence/models/post.js'
import type { EmbedEntity, PhotoEntity, ReshareEntity, StatusMessageEntity } from '../../protocol/entities/posts.js'
import type { Services } from '../../services/services.js'

type PostDependencies = Pick<Services, 'config' | 'db'>

/** The entity of a post with its photos, location, poll and embed; undefined: it is deleted. */
export async function postEntity(
  services: PostDependencies,
  guid: string,
): Promise<StatusMessageEntity | ReshareEntity | undefined> {
  return (await postEntities(services, [guid]))[0]
}

/** The posts that still exist, in any order. The number of statements does not depend on that of the posts. */
export async function postEntities(
  services: PostDependencies,
  guids: readonly string[],
): Promise<readonly (StatusMessageEntity | ReshareEntity)[]> {
  const posts = await Post.query(services.db)
    .whereIn('guid', [...guids])
    .whereNotNull('authorId')
    .withGraphFetched('[author, root.author, photos, location, poll.answers]')
    .modifyGraph('photos', (photos) => photos.orderBy(['position', 'id']))
    .modifyGraph('poll.answers', (answers) => answers.orderBy('position'))
  return posts.map((post) => (post.type === 'Reshare' ? reshareEntity(post) : statusMessageEntity(services, post)))
}

function reshareEntity(post: Post): ReshareEntity {
  const { root } = post
  return {
    type: 'reshare',
    author: addressOf(post),
    guid: post.guid,
    created_at: post.createdAt,
    ...(root && { root_author: addressOf(root), root_guid: root.guid }),
  }
}

function statusMessageEntity(services: PostDependencies, post: Post): StatusMessageEntity {
  const { location, poll, embed, providerDisplayName } = post
  const author = addressOf(post)
  return {
    type: 'status_message',
    author,
    guid: post.guid,
    created_at: post.createdAt,
    public: post.public,
    ...(providerDisplayName !== null && { provider_display_name: providerDisplayName }),
    text: post.text,
    photos: (post.photos ?? []).map((photo) => buildPhotoEntity(services, photo, { author, postGuid: post.guid })),
    ...(location && {
      location: { type: 'location', address: location.address, lat: location.lat, lng: location.lng },
    }),
    ...(poll && {
      poll: {
        type: 'poll',
        guid: poll.guid,
        question: poll.question,
        poll_answers: (poll.answers ?? []).map(({ guid, answer }) => ({ type: 'poll_answer', guid, answer })),
      },
    }),
    ...(embed && embed['cached'] !== true && { embed: { ...embed, type: 'embed' } as EmbedEntity }), // stored in the form of the entity
  }
}

/** The entity of a photo that is sent without a post; undefined: it is deleted. */
export async function photoEntity(services: PostDependencies, guid: string): Promise<PhotoEntity | undefined> {
  const photo = await Photo.query(services.db).findOne({ guid }).withGraphFetched('[author, post]')
  return photo && buildPhotoEntity(services, photo, { author: addressOf(photo), postGuid: photo.post?.guid })
}

export function buildPhotoEntity(
  { config }: Pick<Services, 'config'>,
  photo: Photo,
  { author, postGuid }: { readonly author: string; readonly postGuid: string | undefined },
): PhotoEntity {
  return {
    type: 'photo',
    guid: photo.guid,
    author,
    public: photo.public,
    created_at: photo.createdAt,
    remote_photo_path: photoBaseUrl(photo, config.url),
    remote_photo_name: photo.name,
    ...(photo.text !== null && { text: photo.text }),
    ...(postGuid !== undefined && { status_message_guid: postGuid }),
    ...(photo.height !== null && { height: photo.height }),
    ...(photo.width !== null && { width: photo.width }),
  }
}

function addressOf({ author, guid }: Pick<Post | Photo, 'author' | 'guid'>): string {
  if (author === undefined) throw new Error(`The query for ${guid} has not fetched its author.`)
  return author.address
}
