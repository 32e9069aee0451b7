import * as limits from '../src/limits.js'

type Group = Readonly<Record<string, unknown>>

/** What happens beyond each of those in `src/limits.ts`; where nothing stands here, it is no more than how often or how long something is done. */
const beyond: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  HTTP_LIMITS: {
    headerBytes: '431',
    headersTimeoutMs: '408, the connection ends',
    requestTimeoutMs: '408, the connection ends',
    longRequestTimeoutMs: '408, the connection ends',
    turnTimeoutMs: '429 or 503 with `Retry-After`',
    idleTimeoutMs: 'the connection ends',
    keepAliveTimeoutMs: 'the connection ends',
    requestsPerSocket: 'the last answer says `connection: close`',
    requestsAhead: 'the connection ends',
    connections: 'the new connection ends at once',
    connectionsOfAddress: 'the longest idle connection of the address ends, else the new one',
    connectionsFilledPercent: 'the longest idle connection of the address with the most ends',
    apiBodyBytes: '413',
    urlBytes: '414',
    pathParameterCharacters: '404',
    queryParameterCharacters: '422 (404 where what the path names is not there)',
    formFields: '400',
    formDepth: '400',
    eventLoopDelayMs: '503 with `Retry-After`, but for `/health/live`',
    closeTimeoutMs: 'what is still under way is broken off',
    readinessTimeoutMs: 'not ready',
  },
  TEXT_LIMITS: {
    textCharacters: '422 (400 in the profile)',
    subjectCharacters: '422',
    nameCharacters: '400',
    profileLineCharacters: '400',
    tagsOfPerson: '400',
    labelCharacters: '422',
    pollAnswers: '422',
    photosOfPost: '422',
    aspectNameCharacters: '422',
    tagCharacters: '422, or no tag',
    recipientsOfConversation: '422',
    passwordCharacters: '422',
    passwordBytes: '422',
  },
  WRITE_LIMITS: {
    users: 'the oldest is forgotten',
  },
  REMOTE_LIMITS: {
    connectMs: 'fault `timeout`',
    exchangeMs: 'fault `timeout` (`busy` where we have kept ourselves waiting)',
    headerBytes: 'fault `bad_answer`',
    discoveryBytes: 'fault `answer_too_large`',
    fetchBytes: 'fault `answer_too_large`',
    unreadBytes: 'the connection ends',
    unreadMs: 'the connection ends',
    redirects: 'fault `too_many_redirects`',
    atOnce: 'waits for its turn',
    fetchesPerHost: 'waits for its turn',
    deliveriesPerHost: 'waits for its turn',
    fetchesPerHostPerMinute: 'fault `busy`, tried again later',
    retryAfterSeconds: 'is taken for this much',
  },
  HCARD_LIMITS: {
    guidCharacters: 'fault `DiscoveryFailed`',
    nicknameCharacters: 'cut off',
    nameCharacters: 'fault `DiscoveryFailed`',
    flagCharacters: 'not searchable',
    keyCharacters: 'fault `DiscoveryFailed`',
    levels: 'fault `DiscoveryFailed`',
  },
  WORK_LIMITS: {
    startsAlone: 'a dead letter `crashed`',
    sweptRows: 'the next turn',
    sweptInto: 'it waits',
    closeMs: 'it ends all the same',
  },
  THREAD_LIMITS: {
    tasksQueued: '503 with `Retry-After`, or the job is tried again',
    documentMs: 'fault `DiscoveryFailed`, the thread ends',
  },
  SERVE_LIMITS: {
    envelopes: 'the oldest is forgotten',
    envelopeBytes: 'the oldest is forgotten',
    signaturesUnderWay: '503 with `Retry-After`',
    postsOfPerson: 'left out',
    commentsOnPage: 'left out, with a word about it',
    excerptCharacters: 'cut off',
    namesOnPage: 'shown as they are written',
    discoveryMs: 'not found',
  },
  PAGE_LIMITS: {
    cachedPages: 'the oldest is forgotten',
    cachedBytes: 'the oldest is forgotten',
    renderMs: '503 with `Retry-After`',
    rendersQueued: '503 with `Retry-After`',
    threadMegabytes: 'the thread ends, and the request with 500',
    sources: 'the oldest is forgotten',
  },
  LOOK_UP_LIMITS: {
    waitMs: '202, with a page that reloads itself',
    reloads: '503 with `Retry-After`',
    ofAddress: '429 with `Retry-After`',
    ofAll: '429 with `Retry-After`',
    sources: 'the oldest is forgotten',
    waitingAtOnce: '503 with `Retry-After`',
    atOnce: 'not found',
    atOnceOfHost: 'not found',
  },
  PERSON_STREAM_LIMITS: {
    posts: 'not fetched',
    bytes: 'no post is fetched',
    requestMs: 'no post is fetched',
    allMs: 'the rest is not fetched',
    fetchesOfPost: 'the post is not fetched',
  },
  LOOKUP_LIMITS: {
    chainDepth: 'not fetched: `NotFetchable`',
    linksOfText: 'not looked for',
    linkDepth: 'not looked for',
    fetchesOfMessage: 'not looked for; what needs one more ends as `NotFetchable`',
    strangersOfText: 'not looked for; of a conversation, not kept',
    mentionsOfText: 'shown, and nobody is told',
    tagsOfText: 'shown, and not found by them',
    failuresRemembered: 'the oldest is forgotten',
    keysKept: 'the oldest is forgotten',
    privateKeysKept: 'the oldest is forgotten',
    frontPageMs: 'the pod counts as not looked at',
    frontPageRedirects: 'the pod counts as not looked at',
    urlCharacters: 'no address',
    clockSkewMs: 'taken as now',
    oldestPost: 'taken as when it came',
  },
  RECEIVE_LIMITS: {
    bodyBytes: '413',
    messagesPerJob: 'the next job',
    bytesPerJob: 'the next job; a larger message goes alone',
    jobsUnderWay: 'the next job grows meanwhile',
    acknowledgedMs: '503 with `Retry-After`',
    queuedMessages: '503 with `Retry-After`',
    messagesApart: 'packed apart, behind those of others',
    bytesApart: 'packed apart, behind those of others',
    bytesPercentOfSource: '429 with `Retry-After`',
    messagesOfSource: '429 with `Retry-After`',
    sources: 'the others are not counted',
    recipients: 'the oldest is forgotten',
    recipientsPerQuestion: 'another question',
    examinedCharacters: 'queued without a look at its shape',
  },
  WAITING_LIMITS: {
    messages: 'the oldest is dropped, logged and counted',
    bytes: 'the oldest is dropped, logged and counted',
    messagesOfHost: 'the oldest of the host is dropped, logged and counted',
    bytesOfHost: 'the oldest of the host is dropped, logged and counted',
    unprovenMessages: 'the oldest is dropped, logged and counted',
    unprovenBytes: 'the oldest is dropped, logged and counted',
    unprovenMessagesOfHost: 'the oldest of the network address with the most is dropped, logged and counted',
    unprovenBytesOfHost: 'the oldest of the network address with the most is dropped, logged and counted',
    unprovenBytesOfMessage: 'counts for `longUnprovenBytes`',
    longestUnprovenBytes: 'dropped, logged and counted',
    longUnprovenBytes: 'the oldest is dropped, logged and counted',
    unprovenPatienceSeconds: 'a dead letter without payload',
    deadMessages: 'the oldest is dropped, logged and counted',
    deadBytes: 'the oldest is dropped, logged and counted',
  },
  SIGNER_LIMITS: {
    unprovenOfSourcePerMinute: 'dropped, logged and counted',
    sources: 'the oldest is forgotten',
    strangeHostMs: 'the try has failed',
    knownHostMs: 'the try has failed',
    triesAtStrangeHost: 'a dead letter without payload',
    triesAtKnownHost: 'a dead letter without payload',
    drainMs: 'comes again behind all others',
  },
  DELIVERY_LIMITS: {
    tries: 'given up; `pod dead` has it; only refusals count',
    triesOfContact: 'given up; `pod dead` has it',
    asleepAfterDays: 'nothing new is stored for the pod until it is heard of',
    atOnce: 'waits for its turn',
    relaysUnanswered: 'not stored, counted as skipped',
    participantsUnanswered: 'not stored',
    exchangeMs: 'the try has failed',
    silentAtOnce: 'those that took so long give way',
    redirects: 'the pod is looked at anew',
  },
  OIDC_LIMITS: {
    interactions: 'the oldest without a sign-in is deleted',
    stateBytes: '`invalid_request`',
    bodyBytes: '413',
    accessTokenSeconds: '401 `invalid_token`',
    codeSeconds: '`invalid_grant`',
    interactionSeconds: 'begin again',
    sessionSeconds: 'sign in again',
    sectorDocumentBytes: '400',
    wrongPasswords: '429 with `Retry-After`, longer each time',
    sources: 'the oldest is forgotten',
  },
  SEARCH_LIMITS: {
    shortest: 'nobody is found',
    strangersAtOnce: 'no pod is asked',
    strangersOfUser: 'no pod is asked',
    filters: '422',
  },
  PHOTO_LIMITS: {
    uploadsAtOnce: 'waits for its turn',
    uploadsOfPerson: 'waits for its turn',
    photosOfPerson: '422',
    uploadsBeforeToken: 'waits for its turn',
    uploadsBeforeTokenOfAddress: 'waits for its turn',
    uploadsWaiting: '429 or 503 with `Retry-After`',
    uploadsWaitingOfPerson: '429 or 503 with `Retry-After`',
    madeWithinMs: '503 with `Retry-After`',
    formFields: '422',
    fieldBytes: '422',
    fieldNameBytes: '422',
    sidePixels: '422',
    pixels: '422',
    frames: '422',
    sizeSeconds: '422',
    uploadAgeMs: 'deleted',
  },
  REPLICA_LIMITS: {
    silentForMs: 'lists are read from the primary',
    oldestMs: 'lists are read from the primary',
    acquireTimeout: 'the list is read from the primary',
    statementTimeout: 'the list is read from the primary',
    queryTimeout: 'the list is read from the primary',
  },
  LIVE_LIMITS: {
    listeners: '503 with `Retry-After`',
    listenersOfUser: '429',
    unsentBytes: 'the rest waits in the database',
    drainMs: 'the stream ends; the client can go on where it was',
    missed: 'an event `reset`: read the lists',
  },
}

/** Limits that belong to one rule and stand beside it: what is limited, where, by which name, and what happens beyond. */
const elsewhere: readonly (readonly [what: string, file: string, name: string, beyond: string])[] = [
  ['items of a page without a wish', 'src/web/api/paging.ts', 'DEFAULT_ITEMS', ''],
  ['items of a page', 'src/web/api/paging.ts', 'MOST_ITEMS', 'taken for this much'],
  [
    'people shown with a notification',
    'src/persistence/notifications/list-notifications.ts',
    'MOST_ACTORS',
    'left out',
  ],
  ['how often a message waits for something unknown', 'src/jobs/waiting/waiting-messages.ts', 'TIMES', 'a dead letter'],
  ['seconds that a message waits in all', 'src/jobs/waiting/waiting-messages.ts', 'PATIENCE', 'a dead letter'],
  [
    'ms until the queue has acknowledged',
    'src/jobs/queues/job-queues.ts',
    'ACKNOWLEDGED_WITHIN',
    '503 with `Retry-After` at the door',
  ],
  ['ms for the hand-over after a commit', 'src/jobs/outbox/outbox.ts', 'HAND_OVER_WITHIN', 'the sweeper does it'],
  ['ms to connect to PostgreSQL', 'src/persistence/database/database.ts', 'CONNECT_TIMEOUT', '503'],
  ['ms for a lock of PostgreSQL', 'src/persistence/database/database.ts', 'LOCK_TIMEOUT', '503, or tried again'],
  [
    'ms of a transaction that does nothing',
    'src/persistence/database/database.ts',
    'IDLE_IN_TRANSACTION_TIMEOUT',
    'it is rolled back',
  ],
  [
    'ms for a signature, waiting for a thread included',
    'workers/threads/crypto-pool.ts',
    'SIGNING_WITHIN',
    'the step has failed',
  ],
  ['ms for a task of envelopes', 'workers/threads/crypto-pool.ts', 'OPENING_WITHIN', 'the batch is tried again'],
]

/** Those of what other pods send are in the protocol itself, which imports nothing; FEDERATION.md tells them. */
const protocol = `| XML: characters, levels, elements, attributes, distance to the first element | 4 194 304, 32, 20 000, 1 000, 65 536 | \`src/protocol/xml/xml.ts\` | \`InvalidEnvelope\` or \`InvalidPayload\`, dropped |
| bits of an RSA key | 1 024 to 8 192, exponent 3 or 65 537 | \`src/protocol/signatures/rsa.ts\` | nobody is found |
| characters of an address; of a guid | 255; 16 to 255 | \`src/protocol/address.ts\`, \`values.ts\` | \`ValidationError\`, dropped |
| elements of a relayable that nobody knows; characters of a name, bytes of a text of them | 32; 64, 4 096 | \`src/protocol/entities/relayable-elements.ts\` | \`ValidationError\`, dropped |
| participants of a conversation | 256 | \`src/protocol/entities/conversations.ts\` | \`ValidationError\`, dropped |
| texts and lists of entities | as for clients, and as FEDERATION.md says | \`src/protocol/entities\` | \`ValidationError\`, dropped |`

/** The page about all limits, with the values and reasons as they stand in the code. */
export function limitsPage(read: (path: string) => string): string {
  const source = read('src/limits.ts')
  const groups = Object.entries<unknown>(limits)
    .filter((entry): entry is [string, Group] => typeof entry[1] === 'object' && entry[1] !== null)
    .toSorted(([one], [other]) => source.indexOf(`const ${one} `) - source.indexOf(`const ${other} `))
  return [
    '# Limits',
    '',
    'Everything that comes in, goes out, waits or is kept has an end. Made by `npm run limits` from the code; a test keeps it in step.',
    'What an operator can set is in README under *Settings*.',
    '',
    ...groups.flatMap(([name, group]) => section(name, group, source)),
    '## Beside the rule they belong to',
    '',
    '| limit | value | where | beyond it |',
    '| --- | --- | --- | --- |',
    ...elsewhere.map(([what, file, name, end]) =>
      row(what, valueIn(read(file), name, file), `\`${name}\` in \`${file}\``, end),
    ),
    '',
    '## What other pods send',
    '',
    '| limit | value | where | beyond it |',
    '| --- | --- | --- | --- |',
    protocol,
    '',
  ].join('\n')
}

function section(name: string, group: Group, source: string): readonly string[] {
  const begin = source.indexOf(`export const ${name} `)
  const inside = source.slice(begin, source.indexOf('} as const', begin))
  const rows = Object.entries(group).map(([key, value]) => {
    const reason = new RegExp(`/\\*\\* ((?:(?!\\*/)[^])*) \\*/\\n  ${key}:`).exec(inside)?.[1] ?? ''
    return row(`\`${key}\``, written(value), reason.replace(/\s*\n\s*\* /g, ' '), beyond[name]?.[key] ?? '')
  })
  return [
    `## ${name}`,
    '',
    `In \`src/limits.ts\`. ${aboutOf(source, name)}`.trim(),
    '',
    '| limit | value | reason | beyond it |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
  ]
}

function aboutOf(source: string, name: string): string {
  return new RegExp(`/\\*\\* ([^\\n]*) \\*/\\nexport const ${name} `).exec(source)?.[1] ?? ''
}

/** A number as it stands in the source, which may be a product. */
function valueIn(source: string, name: string, file: string): string {
  const [, text] = new RegExp(`^(?:export )?const ${name} = ([0-9_* ]+)$`, 'm').exec(source) ?? []
  if (text === undefined) throw new Error(`There is no number ${name} in ${file}.`)
  return written(text.split('*').reduce((product, factor) => product * Number(factor.replaceAll('_', '').trim()), 1))
}

function written(value: unknown): string {
  if (value instanceof Date) return value.toISOString().slice(0, 10)
  return String(value).replace(/\B(?=(\d{3})+$)/g, ' ')
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}
