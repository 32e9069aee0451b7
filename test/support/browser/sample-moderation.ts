import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { findClusters } from '../../../src/domain/moderation/clusters/find-clusters.js'
import { addFilter } from '../../../src/domain/moderation/filters/filters.js'
import { hideContent } from '../../../src/domain/moderation/hide-content.js'
import { planPodRuleImport } from '../../../src/domain/moderation/pods/pod-rule-imports.js'
import { setPodRule } from '../../../src/domain/moderation/pods/pod-rules.js'
import { silencePerson } from '../../../src/domain/moderation/restrict-person.js'
import { inviteByStaff } from '../../../src/domain/moderation/sign-ups/invitations.js'
import { addIpRule, addMailRule } from '../../../src/domain/moderation/sign-ups/network-rules.js'
import { addPost } from '../databases/rows.js'
import { addRemotePerson } from '../people/remote-people.js'
import type { ConsolePod } from '../pods/console-pod.js'

const actor = COMMAND_ACTOR

/** A PNG file in Base64. */
const ONE_PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=='

export interface SampleModeration {
  readonly caseId: number
  readonly personGuid: string
  readonly postGuid: string
  readonly photoGuid: string
  readonly ruleId: number
  readonly importId: number
  readonly filterId: number
  readonly clusterId: number
}

/** Adds reports, a restricted person, rules, a filter with hits, a spam wave, an invitation and an import plan for `text`. */
export async function seedModeration({ pod, people }: ConsolePod, text: string): Promise<SampleModeration> {
  const reason = text.slice(0, 1_000)
  const { dan } = await people('dan')
  await findClusters(pod)
  const author = await addRemotePerson(pod, 'rita@loud.example')
  await pod
    .db('people')
    .where({ id: author.id })
    .update({ name: text.split(':')[0]?.slice(0, 200) })
  const posts = await Promise.all(
    [text, 'Cheap watches', 'Cheaper watches'].map((each) => addPost(pod, author, { text: each })),
  )
  for (const { guid } of posts) await dan.post(`/api/v1/posts/${guid}/report`, { reason })
  await dan.post(`/api/v1/users/${author.guid}/report`, { reason })
  const [post, hidden] = posts
  if (post === undefined || hidden === undefined) throw new Error('A sample post is missing.')
  await hideContent(pod, actor, { type: 'post', guid: hidden.guid }, { reason })
  await silencePerson(pod, actor, author.guid, { reason, until: new Date('2199-01-01') })

  const wave = await Promise.all(
    ['ann', 'ben', 'cem', 'dee'].map((name) => addRemotePerson(pod, `${name}@wave.example`)),
  )
  await Promise.all([...wave, ...wave].map((each) => addPost(pod, each, { text: `https://wave.example/buy ${text}` })))
  await findClusters(pod)

  const { rule } = await setPodRule(pod, actor, { domain: 'rude.example', state: 'limited' }, { reason })
  const { plan } = await planPodRuleImport(pod, actor, {
    csv: 'one.example\n*.two.example\nc*n.example\n',
    mode: 'keep',
  })
  const { filter } = await addFilter(pod, actor, { kind: 'word', value: 'watches', action: 'flag' }, { reason })
  await addIpRule(
    pod,
    actor,
    { cidr: '198.51.100.0/24', severity: 'sign_up_block', comment: text.slice(0, 2_000) },
    { reason },
  )
  await addMailRule(pod, actor, { kind: 'domain', value: 'wave.example' }, { reason })
  await pod.db('pending_sign_ups').insert({
    username: 'wanda',
    email: `${'w'.repeat(60)}@wave.example`,
    passwordHash: 'x',
    language: 'en',
    reason: text,
    needsConfirmation: true,
    needsApproval: true,
    network: '198.51.100.0/24',
    rules: ['ip_rule 1'],
    expiresAt: new Date('2199-01-01'),
  })
  await pod.db('unattended_sign_ups').insert({ since: new Date() })
  await inviteByStaff(pod, actor, { uses: 5, note: reason }, { reason })
  const found = await pod.db('moderation_cases').where({ targetGuid: post.guid }).first('id')
  const photoGuid = 'a-photo-of-the-sample'
  await pod
    .db('moderation_cases')
    .where({ id: found.id })
    .update({ photoGuids: [photoGuid] })
  const png = Buffer.from(ONE_PIXEL, 'base64')
  await pod.db('case_pictures').insert({ photoGuid, state: 'ready', blurred: png, clear: png })
  const cluster = await pod.db('clusters').first('id')
  return {
    caseId: found.id,
    personGuid: author.guid,
    postGuid: post.guid,
    photoGuid,
    ruleId: rule.id,
    importId: plan.id,
    filterId: filter.id,
    clusterId: cluster.id,
  }
}
