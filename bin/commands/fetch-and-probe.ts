import type { Command } from 'commander'
import { type DiscoverOptions, discoverPerson } from '../../src/federation/discovery/discover-person.js'
import { fetchEntity } from '../../src/federation/discovery/fetch-entity.js'
import { fetchPersonStream } from '../../src/federation/discovery/fetch-person-stream.js'
import { podOrigin } from '../../src/federation/discovery/pod-origin.js'
import type { FetchRequest } from '../../src/jobs/definitions.js'
import { Post } from '../../src/persistence/models/post.js'
import { readPublicKey } from '../../src/protocol/signatures/rsa.js'
import { CommandError } from '../command-error.js'
import { explainFailure } from '../explain-failure.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { examinePerson, examinePod } from '../probe/examine.js'
import { type FetchTarget, type ProbeTarget, readFetchTarget, readPodOfSource, readProbeTarget } from '../read-named.js'
import { withPod } from '../with-pod.js'

interface FetchOptions extends OutputOptions {
  readonly from?: string
  readonly olderPosts?: boolean
}

/** Options of interactive commands: the current state, without cached failures. */
const NOW: DiscoverOptions = { ignoresRecentFailures: true, refresh: true }

export function federationCommands(program: Command): void {
  program
    .command('fetch')
    .argument('<what>', 'an address, a link to a post, a diaspora:// link, or a guid with --from', readFetchTarget)
    .description('Fetches a person or a public post from another pod, stores it and shows it.')
    .option('--from <pod>', 'the pod to fetch a guid from: its host, or the address of a person there', readPodOfSource)
    .option('--older-posts', 'for a person: fetch public posts older than the oldest known one')
    .option('--json', 'print JSON')
    .addHelpText(
      'after',
      '\nExample:\n  pod fetch alice@pod.example\n  pod fetch https://pod.example/posts/7dba7ca01d64013485eb3131731751e9',
    )
    .action(runFetch)

  program
    .command('probe')
    .argument('<target>', 'an address, or the host or URL of a pod', readProbeTarget)
    .description('Checks discovery and federation endpoints of another pod and reports problems.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod probe alice@pod.example\n  pod probe pod.example')
    .action(probe)
}

async function runFetch(named: FetchTarget, options: FetchOptions, command: Command): Promise<void> {
  const { from } = options
  if (named.kind === 'entity') return fetchPost(named.fetchRequest, options)
  if (named.kind === 'person' && from === undefined) return fetchPerson(named.address, options)
  if (from === undefined) command.error('error: a guid needs --from, with the pod that has it.')
  const guid = named.kind === 'person' ? named.text : named.guid
  return fetchPost({ type: 'post', guid, from, depth: 0 }, options)
}

async function fetchPerson(address: string, options: FetchOptions): Promise<void> {
  const { person, posts } = await withPod(async (services) => {
    const person = await explainFailure(`${address} was not found`, () => discoverPerson(services, address, NOW))
    const fetchedPosts = options.olderPosts
      ? await explainFailure(`The posts of ${address} were not fetched`, () =>
          fetchPersonStream(services, address, { older: true }),
        )
      : undefined
    return { person, posts: fetchedPosts }
  })
  const origin = person.pod ? podOrigin(person.pod) : undefined
  const bits = readPublicKey(person.publicKey)?.asymmetricKeyDetails?.modulusLength ?? null
  const { guid, name, avatarUrl, closedAt } = person
  print(
    options,
    {
      kind: 'person',
      address,
      guid,
      name,
      pod: origin ?? null,
      avatar: avatarUrl,
      key_bits: bits,
      closed: closedAt !== null,
      ...(posts !== undefined && { posts_fetched: posts }),
    },
    [
      `${address} is known, with guid ${guid}.`,
      ...table([
        ['name', name || '(none)'],
        ['pod', origin ?? 'this one'],
        ['picture', avatarUrl ?? '(none)'],
        ['key', `RSA, ${bits} bits`],
        ...(posts === undefined ? [] : [['posts fetched', String(posts)]]),
        ...(closedAt === null ? [] : [['closed', closedAt.toISOString()]]),
      ]),
    ].map(printable),
  )
}

async function fetchPost(fetchRequest: FetchRequest, options: OutputOptions): Promise<void> {
  const post = await withPod(async (services) => {
    const { id } = await explainFailure(`${fetchRequest.guid} could not be fetched`, () =>
      fetchEntity(services, fetchRequest, { ignoresRecentFailures: true }),
    )
    return Post.query(services.db)
      .findById(id)
      .withGraphFetched('[author, root.author, photos, poll, location, tags]')
      .throwIfNotFound()
  })
  const { guid, type, text, createdAt, author, root, photos = [], poll, tags = [] } = post
  const fields = {
    kind: 'post',
    guid,
    type,
    author: author?.address,
    public: post.public,
    created_at: createdAt.toISOString(),
    text,
    photos: photos.length,
    poll: poll?.question ?? null,
    tags: tags.map(({ name }) => name),
    root: root ? { guid: root.guid, author: root.author?.address } : null,
  }
  const rows = [
    ['author', author?.address ?? ''],
    ['written', createdAt.toISOString()],
    ...(root ? [['reshares', `${root.guid} by ${root.author?.address}`]] : []),
    ...(photos.length > 0 ? [['photos', String(photos.length)]] : []),
    ...(poll ? [['poll', poll.question]] : []),
    ...(tags.length > 0 ? [['tags', fields.tags.join(', ')]] : []),
  ]
  print(
    options,
    fields,
    [`${type} ${guid} is known.`, ...table(rows), ...(text === '' ? [] : ['', text])].map(printable),
  )
}

async function probe(target: ProbeTarget, options: OutputOptions): Promise<void> {
  const findings = await withPod((services) =>
    target.kind === 'person' ? examinePerson(services, target.address) : examinePod(services, target.origin),
  )
  const failureCount = findings.filter(({ state }) => state === 'fail').length
  print(
    options,
    {
      target: target.kind === 'person' ? target.address : new URL(target.origin).host,
      healthy: failureCount === 0,
      findings,
    },
    table(findings.map(({ state, check, message }) => [state, check, message])).map(printable),
  )
  if (failureCount > 0)
    throw new CommandError(failureCount === 1 ? 'One check failed.' : `${failureCount} checks failed.`)
}
