import { addToAspect } from '../../../src/domain/contacts/contacts.js'
import { type NewPost, publishPost } from '../../../src/domain/posts/publish-post.js'
import { Aspect } from '../../../src/persistence/models/aspect.js'
import { type ApiPerson, type ApiPod, startApiPod } from './api-pod.js'
import type { PodOptions } from './build-pod.js'

/** Alice and Bob share with each other, Carol shares with Alice; Dan and Eve have no contacts. Posts are given by their guids. */
export interface SampleApiPod extends ApiPod {
  readonly alice: ApiPerson
  readonly bob: ApiPerson
  readonly carol: ApiPerson
  readonly dan: ApiPerson
  readonly eve: ApiPerson
  /** Alice's aspect with Bob in it. */
  readonly friendsAspectId: number
  /** Public posts. */
  readonly alicePost: string
  readonly bobPost: string
  /** Private: Alice is one of the friends. */
  readonly bobFriendsPost: string
  /** Private: Alice may not see it. */
  readonly bobWorkPost: string
  /** Public posts with a poll. */
  readonly bobPoll: string
  readonly carolPoll: string
}

export async function startSampleApiPod(options: PodOptions = {}): Promise<SampleApiPod> {
  const api = await startApiPod(options)
  const { alice, bob, carol, dan, eve } = await api.people('alice', 'bob', 'carol', 'dan', 'eve')
  await share(api, alice, bob)
  await share(api, bob, alice)
  await share(api, carol, alice)
  return {
    ...api,
    alice,
    bob,
    carol,
    dan,
    eve,
    friendsAspectId: await aspectOf(api, alice, 'Friends'),
    alicePost: await publish(api, alice, { text: 'Post of Alice', public: true }),
    bobPost: await publish(api, bob, { text: 'Post of Bob', public: true }),
    bobFriendsPost: await publish(api, bob, {
      text: 'For friends of Bob',
      public: false,
      aspectIds: [await aspectOf(api, bob, 'Friends')],
    }),
    bobWorkPost: await publish(api, bob, {
      text: 'For colleagues of Bob',
      public: false,
      aspectIds: [await aspectOf(api, bob, 'Work')],
    }),
    bobPoll: await publish(api, bob, {
      text: 'Poll of Bob',
      public: true,
      poll: { question: 'Noon?', answers: ['y', 'n'] },
    }),
    carolPoll: await publish(api, carol, {
      text: 'Poll of Carol',
      public: true,
      poll: { question: 'Tea?', answers: ['black', 'green'] },
    }),
  }
}

/** Adds a person to an aspect of another user, and makes that person share with the user. */
export async function share(
  { pod }: Pick<ApiPod, 'pod'>,
  who: ApiPerson,
  whom: Pick<ApiPerson, 'guid'>,
  aspect = 'Friends',
): Promise<void> {
  await addToAspect(pod, who.viewer, { aspectId: await aspectOf({ pod }, who, aspect), personGuid: whom.guid })
}

/** The id of an aspect that every new account has. */
export async function aspectOf({ pod }: Pick<ApiPod, 'pod'>, { viewer }: ApiPerson, name: string): Promise<number> {
  const { id } = await Aspect.query(pod.db).findOne({ userId: viewer.userId, name }).throwIfNotFound()
  return id
}

/** Returns the guid of a new post. */
export async function publish({ pod }: Pick<ApiPod, 'pod'>, { viewer }: ApiPerson, post: NewPost): Promise<string> {
  const { guid } = await publishPost(pod, viewer, post)
  return guid
}
