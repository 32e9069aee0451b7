import { photoBaseUrl } from '../../domain/photos/photos.js'
import { Photo } from '../../persistence/models/photo.js'
import { Post } from '../../persistence/models/post.js'
import type { Pod } from '../../pod/pod.js'
import type { EmbedEntity, PhotoEntity, ReshareEntity, StatusMessageEntity } from '../../protocol/entities/posts.js'

type Source = Pick<Pod, 'config' | 'db'>

/** A post as it travels, with everything that is part of it; undefined: it is gone. */
export async function postEntity(pod: Source, guid: string): Promise<StatusMessageEntity | ReshareEntity | undefined> {
  const post = await Post.query(pod.db)
    .findOne({ guid })
    .withGraphFetched('[author, root.author, photos, location, poll.answers]')
    .modifyGraph('photos', (photos) => photos.orderBy(['position', 'id']))
    .modifyGraph('poll.answers', (answers) => answers.orderBy('position'))
  if (post === undefined) return undefined
  return post.type === 'Reshare' ? reshareEntity(post) : statusMessageEntity(pod, post)
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

function statusMessageEntity(pod: Source, post: Post): StatusMessageEntity {
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
    photos: (post.photos ?? []).map((photo) => photoAs(pod, photo, { author, postGuid: post.guid })),
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
    ...(embed && { embed: { ...embed, type: 'embed' } as EmbedEntity }), // it is stored as the entity has it
  }
}

/** A photo that travels on its own; undefined: it is gone. */
export async function photoEntity(pod: Source, guid: string): Promise<PhotoEntity | undefined> {
  const photo = await Photo.query(pod.db).findOne({ guid }).withGraphFetched('[author, post]')
  return photo && photoAs(pod, photo, { author: addressOf(photo), postGuid: photo.post?.guid })
}

function photoAs(
  { config }: Source,
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
  if (author === undefined) throw new Error(`The author of ${guid} was not read with it.`)
  return author.address
}
