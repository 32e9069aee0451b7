import { addToAspect } from '../../src/domain/contacts/contacts.js'
import { createMessage, startConversation } from '../../src/domain/conversations/conversations.js'
import { createComment } from '../../src/domain/interactions/comments.js'
import { createLike } from '../../src/domain/interactions/likes.js'
import { voteInPoll } from '../../src/domain/interactions/votes.js'
import { changeProfile } from '../../src/domain/people/profiles.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { createReshare } from '../../src/domain/posts/reshares.js'
import { Poll } from '../../src/persistence/models/poll.js'
import type { Services } from '../../src/services/services.js'
import type { SampleUser } from './sample-users.js'

/** Sample data between two users, so that no list of a client is empty. */
export async function createSampleData(services: Services, alice: SampleUser, bob: SampleUser): Promise<void> {
  await createProfilesAndContacts(services, alice, bob)
  await createPublicPosts(services, alice, bob)
  await createPrivateContent(services, alice, bob)
}

/** Shares with a person of another pod and mentions them in a post. */
export async function shareWithAndMention(
  services: Services,
  who: SampleUser,
  friend: { readonly guid: string; readonly address: string },
): Promise<void> {
  await addToAspect(services, who, { aspectId: who.aspectId, personGuid: friend.guid })
  await publishPost(services, who, {
    text: `Hello @{${friend.address}}! I live on ${services.config.host}, and you can answer from where you are. #newhere`,
    public: true,
  })
}

async function createProfilesAndContacts(services: Services, alice: SampleUser, bob: SampleUser): Promise<void> {
  await changeProfile(services, alice, {
    name: 'Alice',
    bio: 'I plant trees and take pictures of them.',
    location: 'By the river',
    tags: ['trees', 'gardening'],
    publicDetails: true,
  })
  await changeProfile(services, bob, { name: 'Bob', bio: 'Bread, bicycles and the blues.', tags: ['bread', 'music'] })
  await addToAspect(services, alice, { aspectId: alice.aspectId, personGuid: bob.guid })
  await addToAspect(services, bob, { aspectId: bob.aspectId, personGuid: alice.guid })
}

async function createPublicPosts(services: Services, alice: SampleUser, bob: SampleUser): Promise<void> {
  const trees = await publishPost(services, alice, {
    text: `## A tree for the yard\n\nThere is room for one more. What do you think, @{${bob.address}}? #trees #gardening`,
    public: true,
    poll: { question: 'Which one?', answers: ['Oak', 'Beech', 'Lime'] },
    location: { address: 'The yard behind the house', lat: '52.5163', lng: '13.3777' },
  })
  const { answers = [] } = await Poll.query(services.db)
    .findOne({ postId: trees.id })
    .withGraphFetched('answers')
    .throwIfNotFound()
  const oak = answers.find(({ answer }) => answer === 'Oak')
  if (oak !== undefined) await voteInPoll(services, bob, { postGuid: trees.guid, answerId: oak.id })
  await createLike(services, bob, { postGuid: trees.guid })
  const advice = await createComment(services, bob, {
    postGuid: trees.guid,
    text: 'An oak, so that somebody sits under it in a **hundred** years.',
  })
  await createLike(services, alice, { postGuid: trees.guid, commentGuid: advice.guid })
  await createComment(services, alice, {
    postGuid: trees.guid,
    text: `Then an oak it is. Thank you, @{${bob.address}}!`,
  })
  await createReshare(services, bob, trees.guid)
}

async function createPrivateContent(services: Services, alice: SampleUser, bob: SampleUser): Promise<void> {
  const bread = await publishPost(services, bob, {
    text: 'Fresh bread on Saturday, only for friends. Who comes?',
    public: false,
    aspectIds: [bob.aspectId],
  })
  await createComment(services, alice, { postGuid: bread.guid, text: 'I bring the butter.' })
  const { guid } = await startConversation(services, alice, {
    subject: 'Saturday',
    text: 'At what time?',
    recipientGuids: [bob.guid],
  })
  await createMessage(services, bob, { conversationGuid: guid, text: 'At ten. Bring a bag.' })
}
