import { plain } from '../support/files/pictures.js'
import type { LocalPost } from './burst-messages.js'
import type { UserWithToken } from './mixed-load-pod.js'
import { fieldOf, type PersistentClient } from './persistent-client.js'

/** Actions of local users that the API has acknowledged. */
export interface UserActions {
  readonly posts: LocalPost[]
  readonly comments: { readonly guid: string; readonly parent_guid: string; readonly author: string }[]
  readonly likes: { readonly parent_guid: string; readonly author: string }[]
  readonly conversations: string[]
  readonly messages: string[]
  readonly photos: string[]
}

export function noUserActions(): UserActions {
  return { posts: [], comments: [], likes: [], conversations: [], messages: [], photos: [] }
}

const READS = ['/streams/main', '/streams/activity', '/notifications', '/conversations', '/aspects', '/user', '/photos']

/** Publishes one post of each client, on which the other clients comment. */
export async function publishAll(
  clients: readonly PersistentClient[],
  actions: UserActions,
): Promise<readonly LocalPost[]> {
  const published = await Promise.all(
    clients.map(async ({ user, post }) => {
      const guid = fieldOf(await post('/posts', { public: true, body: 'Good #morning from here' }), 'guid')
      return guid === undefined ? [] : [{ guid, author: user.address }]
    }),
  )
  actions.posts.push(...published.flat())
  return published.flat()
}

/** Runs one session of a user, which reads more than it writes. */
export async function runSession(
  client: PersistentClient,
  posts: readonly LocalPost[],
  others: readonly Pick<UserWithToken, 'guid'>[],
  actions: UserActions,
): Promise<void> {
  const { user, get, post } = client
  const otherPosts = posts.filter(({ author }) => author !== user.address)
  for (const { guid } of otherPosts) {
    const comment = fieldOf(await post(`/posts/${guid}/comments`, { body: 'So do I' }), 'guid')
    if (comment !== undefined) actions.comments.push({ guid: comment, parent_guid: guid, author: user.address })
    for (const path of [`/posts/${guid}/comments`, `/posts/${guid}/likes`, `/posts/${guid}`]) await get(path)
    if ((await post(`/posts/${guid}/likes`, {})) === null) {
      actions.likes.push({ parent_guid: guid, author: user.address })
    }
    for (const path of READS) await get(path)
  }
  await startConversation(client, others, actions)
  await uploadPhoto(client, actions)
}

async function startConversation(
  { post, get }: PersistentClient,
  others: readonly Pick<UserWithToken, 'guid'>[],
  actions: UserActions,
): Promise<void> {
  const recipients = others.map(({ guid }) => guid)
  const guid = fieldOf(await post('/conversations', { subject: 'Tea', body: 'At five?', recipients }), 'guid')
  if (guid === undefined) return
  actions.conversations.push(guid)
  const message = fieldOf(await post(`/conversations/${guid}/messages`, { body: 'Or at six?' }), 'guid')
  if (message !== undefined) actions.messages.push(message)
  await get(`/conversations/${guid}/messages`)
}

async function uploadPhoto({ post }: PersistentClient, actions: UserActions): Promise<void> {
  const form = new FormData()
  form.append('image', new Blob([await picture]), 'one.png')
  form.append('pending', 'true')
  const guid = fieldOf(await post('/photos', form), 'guid')
  if (guid !== undefined) actions.photos.push(guid)
}

const picture = plain(320, 240).png().toBuffer()
