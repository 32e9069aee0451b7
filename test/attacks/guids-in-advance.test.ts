import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { photoBy, pollWith, postBy, voteBy } from '../support/federation/entities.js'
import { signedBy } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { type AttackedPod, startAttackedPod } from './attacked-pod.js'

describe('S99: guids of parts that an attacker has used before the post is received', () => {
  let fakePods: FakePods
  let pod: AttackedPod
  let gina: FakePerson
  let mallory: FakePerson
  beforeAll(async () => {
    fakePods = await startFakePods()
    pod = await startAttackedPod({ fakePods })
    gina = fakePods.person('gina@good.example')
    mallory = fakePods.person('mallory@evil.example')
    await pod.addRemotePerson(gina)
    await pod.addRemotePerson(mallory)
  })
  afterAll(async () => {
    await pod.close()
    await fakePods.close()
  })

  it('a post whose answer guids are taken is stored with both polls, and votes count for the poll that they name', async () => {
    const theirs = postBy(gina, { poll: pollWith('Yes', 'No') })
    const poll = { ...pollWith('Yes', 'No'), poll_answers: theirs.poll?.poll_answers ?? [] }
    expect(await pod.postPublic(postBy(mallory, { poll }), mallory)).toBe(202)
    await pod.waitUntilIdle()
    expect(await pod.postPublic(theirs, gina)).toBe(202)
    await pod.waitUntilIdle()

    const [yes] = poll.poll_answers
    if (theirs.poll === undefined || yes === undefined) throw new Error('There is no poll.')
    await pod.postPublic(signedBy(gina, voteBy(gina, theirs.poll, yes)), gina)
    await pod.waitUntilIdle()

    const votes = pod.db('pollAnswers').join('polls', 'polls.id', 'pollId')
    expect(
      await votes.clone().where({ 'polls.guid': theirs.poll.guid }).orderBy('position').pluck('vote_count'),
    ).toEqual([1, 0])
    expect(await votes.clone().where({ 'polls.guid': poll.guid }).pluck('vote_count')).toEqual([0, 0])
  })

  it('a post whose photo and poll guids are taken is stored with everything else', async () => {
    const theirs = postBy(gina, { photos: [photoBy(gina), photoBy(gina)], poll: pollWith('Yes', 'No') })
    const [first] = theirs.photos
    if (first === undefined) throw new Error('There is no photo.')
    const taken = postBy(mallory, { photos: [photoBy(mallory, { guid: first.guid })], poll: theirs.poll })
    expect(await pod.postPublic(taken, mallory)).toBe(202)
    await pod.waitUntilIdle()

    expect(await pod.postPublic(theirs, gina)).toBe(202)
    await pod.waitUntilIdle()

    const post = await pod.db('posts').where({ guid: theirs.guid }).first('id', 'text')
    expect(post).toMatchObject({ text: theirs.text })
    expect(await pod.db('photos').where({ postId: post.id }).pluck('guid')).toEqual([theirs.photos[1]?.guid])
  })
})
