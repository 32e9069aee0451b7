import * as domainAccountsFactors from '../src/domain/accounts/factors/limits.js'
import * as domainAccounts from '../src/domain/accounts/limits.js'
import * as domainArchives from '../src/domain/archives/limits.js'
import * as domain from '../src/domain/limits.js'
import * as domainMail from '../src/domain/mail/limits.js'
import * as domainModeration from '../src/domain/moderation/limits.js'
import * as domainPeople from '../src/domain/people/limits.js'
import * as domainPhotos from '../src/domain/photos/limits.js'
import * as federationArchives from '../src/federation/archives/limits.js'
import * as federationDiscovery from '../src/federation/discovery/limits.js'
import * as federationInbound from '../src/federation/inbound/limits.js'
import * as federationOutbound from '../src/federation/outbound/limits.js'
import * as federationRemotePod from '../src/federation/remote-pod/limits.js'
import * as jobsInbound from '../src/jobs/inbound/limits.js'
import * as jobsWaiting from '../src/jobs/waiting/limits.js'
import * as persistenceAccounts from '../src/persistence/accounts/limits.js'
import * as persistenceDatabase from '../src/persistence/database/limits.js'
import * as persistenceNotifications from '../src/persistence/notifications/limits.js'
import * as persistenceOutbound from '../src/persistence/outbound/limits.js'
import * as persistencePeople from '../src/persistence/people/limits.js'
import * as persistencePhotos from '../src/persistence/photos/limits.js'
import * as persistencePosts from '../src/persistence/posts/limits.js'
import * as persistenceRetention from '../src/persistence/retention/limits.js'
import * as protocolArchives from '../src/protocol/archives/limits.js'
import * as protocolDiscovery from '../src/protocol/discovery/limits.js'
import * as pod from '../src/services/limits.js'
import * as webApi from '../src/web/api/limits.js'
import * as webConsole from '../src/web/console/limits.js'
import * as webLive from '../src/web/live/limits.js'
import * as webOidc from '../src/web/oidc/limits.js'
import * as webPages from '../src/web/pages/limits.js'
import * as webRoutesFederation from '../src/web/routes/federation/limits.js'
import * as webServer from '../src/web/server/limits.js'
import * as workers from '../workers/limits.js'
import * as workersThreads from '../workers/threads/limits.js'

type Group = Readonly<Record<string, unknown>>

/** All files with fixed limits, in the order of the page. */
export const limitFiles: Readonly<Record<string, Readonly<Record<string, Group>>>> = {
  'src/web/server/limits.ts': webServer,
  'src/web/api/limits.ts': webApi,
  'src/web/console/limits.ts': webConsole,
  'src/web/live/limits.ts': webLive,
  'src/web/oidc/limits.ts': webOidc,
  'src/domain/accounts/limits.ts': domainAccounts,
  'src/domain/accounts/factors/limits.ts': domainAccountsFactors,
  'src/persistence/accounts/limits.ts': persistenceAccounts,
  'src/web/pages/limits.ts': webPages,
  'src/web/routes/federation/limits.ts': webRoutesFederation,
  'src/domain/mail/limits.ts': domainMail,
  'src/domain/limits.ts': domain,
  'src/persistence/posts/limits.ts': persistencePosts,
  'src/domain/moderation/limits.ts': domainModeration,
  'src/domain/people/limits.ts': domainPeople,
  'src/persistence/notifications/limits.ts': persistenceNotifications,
  'src/persistence/people/limits.ts': persistencePeople,
  'src/persistence/photos/limits.ts': persistencePhotos,
  'src/domain/photos/limits.ts': domainPhotos,
  'src/domain/archives/limits.ts': domainArchives,
  'src/federation/archives/limits.ts': federationArchives,
  'src/protocol/archives/limits.ts': protocolArchives,
  'src/jobs/inbound/limits.ts': jobsInbound,
  'src/federation/inbound/limits.ts': federationInbound,
  'src/jobs/waiting/limits.ts': jobsWaiting,
  'src/federation/discovery/limits.ts': federationDiscovery,
  'src/protocol/discovery/limits.ts': protocolDiscovery,
  'src/federation/remote-pod/limits.ts': federationRemotePod,
  'src/federation/outbound/limits.ts': federationOutbound,
  'src/persistence/outbound/limits.ts': persistenceOutbound,
  'src/persistence/retention/limits.ts': persistenceRetention,
  'src/persistence/database/limits.ts': persistenceDatabase,
  'workers/limits.ts': workers,
  'workers/threads/limits.ts': workersThreads,
  'src/services/limits.ts': pod,
}

/** What happens beyond each limit. Without an entry the value is only an interval or a duration. */
const beyond: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  HTTP_LIMITS: {
    headerBytes: '431',
    headersTimeoutMs: '408, the connection ends',
    requestTimeoutMs: '408, the connection ends',
    longRequestTimeoutMs: '408, the connection ends',
    turnTimeoutMs: '429 or 503 with `Retry-After`',
    idleTimeoutMs: 'the connection ends',
    keepAliveTimeoutMs: 'the connection ends',
    requestsPerSocket: 'the last response has `connection: close`',
    requestsAhead: 'the connection ends',
    connections: 'the new connection is closed',
    connectionsOfAddress: 'the longest idle connection of the address is closed, else the new one',
    connectionsFilledPercent: 'the longest idle connection of the address with the most is closed',
    apiBodyBytes: '413',
    urlBytes: '414',
    pathParameterCharacters: '404',
    queryParameterCharacters: '422 (404 if the resource of the path does not exist)',
    formFields: '400',
    formDepth: '400',
    eventLoopDelayMs: '503 with `Retry-After`, except `/health/live`',
    closeTimeoutMs: 'running requests are aborted',
    readinessTimeoutMs: 'not ready',
  },
  QUARANTINE_LIMITS: {
    maxMessages: 'the oldest row is deleted',
    maxBytes: 'the oldest rows are deleted',
    rowsOfFault: 'the oldest row of the fault is deleted',
    rowsOfHost: 'the oldest row of the host is deleted',
    payloadBytes: 'only the beginning is stored',
    beginningCharacters: 'the rest is left out',
    insertsPerSecond: 'a random sample is stored',
    keptDays: 'the row is deleted',
  },
  MODERATION_LIMITS: {
    reasonCharacters: '422',
    maxReports: '429',
    filters: '422',
    filterCharacters: '422',
    patternWordCharacters: 'only this number is compared',
    patternComparisons: 'the other patterns are not compared',
    hitsStored: 'the older ones are deleted',
    excerptCharacters: 'the rest is left out',
    dryRunRows: 'a partial answer',
    dryRunSeconds: 'a partial answer',
    dryRunDays: '422',
    keysOfContent: 'the others are not compared',
    clusterRows: 'the rest is read a minute later',
    clusterItems: 'no further ones are added',
    clusterItemsShown: 'the newest are shown',
    clusterAuthors: 'the others stay as they are',
    clusterPods: 'the others stay as they are',
    cleanedByModerator: '403',
    removedPerCleaning: 'the others are hidden',
    maxPageItems: 'as many',
  },
  MAIL_LIMITS: {
    maxPermanentFaults: 'no more notification mails',
    bounceBytes: 'an error',
    confirmationsPerDay: 'no mail',
    nameCharacters: 'the rest is left out',
    excerptCharacters: 'the rest is left out',
    readCharacters: 'the rest is left out',
    notificationMailsPerHour: 'the rest is in the digest',
    notificationMailsPerDay: 'the rest is in the digest',
    digestLines: 'the rest is counted',
    waitingDays: 'the mail is given up',
  },
  LIST_LIMITS: {
    aspects: '422',
    followedTags: '422; in an import the tag is refused: `over_limit`',
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
    mentionsOfText: 'shown, without notification',
    tagsOfText: 'shown, but not in the stream of the tag',
  },
  WRITE_LIMITS: {
    users: 'the oldest entry is removed',
  },
  REMOTE_LIMITS: {
    connectMs: 'fault `timeout`',
    dnsNames: 'the oldest is queried again',
    tlsSessions: 'the oldest is removed: a full handshake',
    exchangeMs: 'fault `timeout` (`busy` if the time passed while waiting for a slot)',
    headerBytes: 'fault `bad_answer`',
    discoveryBytes: 'fault `answer_too_large`',
    fetchBytes: 'fault `answer_too_large`',
    unreadBytes: 'the connection ends',
    unreadMs: 'the connection ends',
    redirects: 'fault `too_many_redirects`',
    maxConcurrent: 'waits for a slot',
    fetchesPerHost: 'waits for a slot',
    deliveriesPerHost: 'waits for a slot',
    fetchesPerHostPerMinute: 'fault `busy`, retried later',
    retryAfterSeconds: 'clamped',
  },
  HCARD_LIMITS: {
    guidCharacters: 'fault `DiscoveryFailed`',
    nicknameCharacters: 'truncated',
    nameCharacters: 'fault `DiscoveryFailed`',
    flagCharacters: 'not searchable',
    keyCharacters: 'fault `DiscoveryFailed`',
    levels: 'fault `DiscoveryFailed`',
  },
  WORK_LIMITS: {
    startsOfSuspect: 'a dead letter `crashed`',
    sweptRows: 'left for the next run',
    maxJobsBeforeSweepStops: 'the row waits',
  },
  BURST_LIMITS: {
    maxUnstoredMessages: 'relays and participations wait',
    maxWaitMs: 'relays and participations start',
  },
  PROCESS_LIMITS: {
    closeMs: 'the process exits',
  },
  THREAD_LIMITS: {
    tasksQueued: '503 with `Retry-After`, or the job is retried',
    documentMs: 'fault `DiscoveryFailed`, the thread ends',
    keyPairMs: 'the sign-up or import fails, the thread ends',
    signatureMs: 'the step fails, the thread ends',
    envelopesMs: 'the batch is retried, the thread ends',
    oldMegabytes: 'the thread ends, and the task fails',
    youngMegabytes: 'new objects are collected earlier',
  },
  SERVE_LIMITS: {
    envelopes: 'the oldest entry is removed',
    envelopeBytes: 'the oldest entry is removed',
    signaturesUnderWay: '503 with `Retry-After`',
  },
  PUBLIC_POST_LIMITS: {
    postsOfPerson: 'left out',
    commentsOnPage: 'left out, with a note',
    excerptCharacters: 'truncated',
    namesOnPage: 'shown as plain text',
  },
  PAGE_LIMITS: {
    cachedPages: 'the oldest entry is removed',
    cachedBytes: 'the oldest entry is removed',
    renderMs: '503 with `Retry-After`',
    rendersQueued: '503 with `Retry-After`',
    threadMegabytes: 'the thread ends, and the request fails with 500',
    sources: 'the oldest entry is removed',
  },
  ANONYMOUS_LOOKUP_LIMITS: {
    waitMs: '202, with a page that reloads itself',
    maxReloads: '503 with `Retry-After`',
    perMinuteOfAddress: '429 with `Retry-After`',
    perMinuteInTotal: '429 with `Retry-After`',
    sources: 'the oldest entry is removed',
    maxWaitingRequests: '503 with `Retry-After`',
    maxConcurrent: 'not found',
    maxConcurrentOfHost: 'not found',
    discoveryMs: 'not found',
    followUrlMs: 'the page that the software of the pod is known to have',
  },
  PERSON_STREAM_LIMITS: {
    posts: 'not fetched',
    bytes: 'no post is fetched',
    requestMs: 'no post is fetched',
    allMs: 'the rest is not fetched',
    fetchesOfPost: 'the post is not fetched',
  },
  BACKGROUND_LIMITS: { pauseAboveJobs: 'exports and imports pause' },
  ARCHIVE_LIMITS: {
    exportsADay: '429 with `Retry-After`',
    exportAttempts: 'the export has failed: `interrupted`',
  },
  IMPORT_LIMITS: {
    expandedBytes: 'the archive is refused: `too_large`',
    expansionRatio: 'the archive is refused: `too_large`',
    posts: 'the archive is refused: `too_many`',
    contacts: 'the archive is refused: `too_many`',
    aspects: 'the archive is refused: `too_many`; aspects that only contacts name are not created',
    marks: 'the archive is refused: `too_many`',
    listedRefusals: 'the rest is counted',
    settingsCharacters: 'the settings are not imported',
    items: 'the archive is refused: `too_many`',
    batchItems: 'the next transaction',
    batchCharacters: 'the next transaction',
    lookupsOfBatchMs: 'the item is refused: `over_limit`, and tried again later',
    fetchesOfBatchMs: 'the item is refused: `parent_missing` or `root_missing`, and tried again later',
    lookupsOfCheckMs: 'the report counts the people as unreachable',
    turnMs: 'the other imports continue first',
    retryMs: 'tried again later',
    unknownPeopleOfHost: 'the item is refused: `over_limit`, and tried again later',
    photoEntries: 'the zip or the archive is refused: `too_many`',
    announcedHosts: 'announced with all other known pods, over `secondWaveHours`',
    announceAttempts: 'the announcement to the pod ends',
    checksADay: 'the upload is refused: 429',
    checkDays: 'the start is refused: the archive has to be uploaded again',
    identityAttempts: 'the account counts as unproven',
    partBytes: '413',
    keptFreeBytes: 'the upload is refused: 507; a check or an import of photos fails: `no_space`',
    writingSeconds: 'another request may write to the file',
  },
  ARCHIVE_READ_LIMITS: {
    depth: 'the archive is refused: `broken_json`',
    stringCharacters: 'the archive is refused: `too_large`',
    itemCharacters: 'the archive is refused: `too_large`',
  },
  DISCOVERY_LIMITS: {
    failuresRemembered: 'the oldest entry is removed',
    movesFollowed: 'the message of the move is not fetched',
    frontPageMs: 'the check of the pod has failed',
    frontPageRedirects: 'the check of the pod has failed',
    urlCharacters: 'not a valid URL',
  },
  REFERENCE_LIMITS: {
    chainDepth: 'not fetched: `NotFetchable`',
    linksOfText: 'not fetched',
    linkDepth: 'not fetched',
    fetchesOfMessage: 'not fetched; an entity that needs one more ends as `NotFetchable`',
    unknownPeopleOfText: 'not looked up; in a conversation, not stored',
  },
  INBOUND_LIMITS: {
    keysCached: 'the oldest entry is removed',
    clockSkewMs: 'replaced by the current time',
    oldestPost: 'replaced by the time of receipt',
    movesInARow: 'the migration is rejected: `NotAllowed`',
    forwardedDays: 'not forwarded',
    forwardedOfPodADay: 'not forwarded; the sender gets the migration',
    maxNotifiedAgeDays: 'stored without notifications',
    tracesOfLogLine: 'left out',
  },
  RECEIVE_LIMITS: {
    bodyBytes: '413',
    messagesPerJob: 'the next job',
    bytesPerJob: 'the next job; a larger message is a job of its own',
    jobsUnderWay: 'the next job collects messages',
    acknowledgedMs: '503 with `Retry-After`',
    queuedMessages: '503 with `Retry-After`',
    sharedMessagesPerSecond: 'separate jobs, after those of other sources',
    messagesPerShare: 'separate jobs, after those of other sources',
    bytesPerShare: 'separate jobs, after those of other sources',
    bytesPercentOfSource: '429 with `Retry-After`',
    messagesOfSource: '429 with `Retry-After`',
    sources: 'further sources are not counted',
    recipients: 'the oldest entry is removed',
    recipientsPerQuery: 'another query',
    examinedCharacters: 'queued without examination',
  },
  DEAD_LETTER_LIMITS: {
    maxRows: 'a worker deletes the oldest',
    maxBytes: 'a worker deletes the oldest',
  },
  WAITING_LIMITS: {
    maxWaitsOfMessage: 'a dead letter',
    waitSeconds: 'a dead letter',
    retractionWaitSeconds: 'a dead letter',
    maxVerifiedMessages: 'the oldest is dropped, logged and counted',
    maxVerifiedBytes: 'the oldest is dropped, logged and counted',
    maxMessagesOfHost: 'the oldest of the host is dropped, logged and counted',
    maxBytesOfHost: 'the oldest of the host is dropped, logged and counted',
    maxUnverifiedMessages: 'the oldest is dropped, logged and counted',
    maxUnverifiedBytes: 'the oldest is dropped, logged and counted',
    maxUnverifiedMessagesOfHost: 'the oldest of the network address with the most is dropped, logged and counted',
    maxUnverifiedBytesOfHost: 'the oldest of the network address with the most is dropped, logged and counted',
    longMessageBytes: 'counts for `maxLongUnverifiedBytes`',
    maxUnverifiedMessageBytes: 'dropped, logged and counted',
    maxLongUnverifiedBytes: 'the oldest is dropped, logged and counted',
    unverifiedWaitSeconds: 'a dead letter without payload',
    maxDeadMessages: 'the oldest is dropped, logged and counted',
    maxDeadBytes: 'the oldest is dropped, logged and counted',
  },
  SIGNER_LIMITS: {
    unverifiedOfSourcePerMinute: 'dropped, logged and counted',
    sources: 'the oldest entry is removed',
    unknownHostMs: 'the attempt has failed',
    knownHostMs: 'the attempt has failed',
    attemptsAtUnknownHost: 'a dead letter without payload',
    attemptsAtKnownHost: 'a dead letter without payload',
    runMs: 'queued again after all others',
  },
  DELIVERY_LIMITS: {
    maxRefusals: 'dead letter (`pod dead`); only refusals count',
    maxRefusalsOfContact: 'dead letter (`pod dead`)',
    maxConcurrentPods: 'waits for a slot',
    maxPodsWithoutSlot: 'keeps its slot',
    maxConcurrent: 'waits for a slot',
    exchangeMs: 'the attempt has failed',
    maxConcurrentSilentPods: 'the slowest yield their slot',
    tracesOfLogLine: 'left out',
    redirectsBeforeCheck: 'the pod is checked',
  },
  MOVE_LIMITS: {
    rowsWithAccount: 'moved afterwards by a job',
  },
  UNDELIVERED_LIMITS: {
    asleepAfterDays: 'nothing new is stored for the pod until it responds',
    expiresAfterDays: 'given up at its next failure, and not revived when its pod wakes',
    reportDays: 'nothing is shown about the deliveries of a post',
    relaysOfNeverAnsweredPod: 'not stored, counted as skipped',
    retractionsToBlocked: 'the interaction is not answered',
    participationsWaiting: 'written when those before have arrived',
    participantsOfNeverAnsweredPods: 'not stored',
  },
  OIDC_LIMITS: {
    interactions: 'the oldest without a sign-in is deleted',
    stateBytes: '`invalid_request`',
    bodyBytes: '413',
    settingsBodyBytes: '413',
    accessTokenSeconds: '401 `invalid_token`',
    codeSeconds: '`invalid_grant`',
    interactionSeconds: 'the user starts again',
    sessionSeconds: 'the user signs in again',
    wrongPasswords: '429 with `Retry-After`, longer each time',
    sources: 'the oldest entry is removed',
  },
  OWN_DATA_LIMITS: {
    auditEntriesCounted: 'no more are counted',
  },
  CLIENT_LIMITS: {
    sectorDocumentBytes: '400',
  },
  FACTOR_LIMITS: {
    secondStepSeconds: 'the user signs in again',
    attemptsOfSecondStep: 'the user signs in again',
    wrongCodesPerHour: '429',
    authenticatedSeconds: 'a page asks the user for the password',
    wrongAttempts: 'the session ends',
  },
  POD_LIMITS: {
    termsBytes: 'the pod does not start',
  },
  INACTIVITY_LIMITS: {
    accountsPerRun: 'left to the next run, an hour later',
  },
  ACCOUNT_LIMITS: {
    resetsPerHour: 'the same page, no mail',
    resetsPerDay: 'the same page, no mail',
    resetsOfAddress: 'the same page, no mail',
    typedBytes: 'the rest is left out',
    unconfirmedDays: 'the name is free',
    undecidedDays: 'the name is free',
    knownBrowserDays: 'a sign-in sends a mail',
    signUpsOfNetwork: '503',
    pendingSignUps: '503',
    confirmationMails: 'no mail',
    reasonCharacters: '422',
    invitationsAfterDays: 'refused',
    minFormSeconds: 'the form again',
    maxFormSeconds: 'the form again',
    privateKeysCached: 'the oldest entry is removed',
  },
  UNREAD_LIMITS: {
    maxCounted: 'no more are counted',
  },
  COMPRESSION_LIMITS: {
    minBytes: 'sent as it is',
    bytesOnEventLoop: 'compressed in a thread',
  },
  SEARCH_LIMITS: {
    minCharacters: 'no result',
    maxConcurrentRemoteLookups: 'only known people are found',
    maxConcurrentRemoteLookupsOfUser: 'only known people are found',
    filters: '422',
  },
  PHOTO_LIMITS: {
    maxConcurrentUploads: 'waits for a slot',
    uploadsOfPerson: 'waits for a slot',
    photosOfPerson: '422',
    uploadsBeforeToken: 'waits for a slot',
    uploadsBeforeTokenOfAddress: 'waits for a slot',
    uploadsWaiting: '429 or 503 with `Retry-After`',
    uploadsWaitingOfPerson: '429 or 503 with `Retry-After`',
    madeWithinMs: '503 with `Retry-After`',
    formFields: '422',
    fieldBytes: '422',
    fieldNameBytes: '422',
    originalBytes: 'its missing sizes are not made',
    sidePixels: '422',
    pixels: '422',
    frames: '422',
    sizeSeconds: '422',
    uploadAgeMs: 'deleted',
  },
  ALT_TEXT_LIMITS: {
    altTextCharacters: '422',
  },
  WEB_DATABASE_LIMITS: {
    pool: 'the request waits for a connection',
    acquireTimeoutMs: '503 with `Retry-After`',
    statementTimeoutMs: '503 with `Retry-After`',
    queryTimeoutMs: '503 with `Retry-After`',
  },
  WORKER_DATABASE_LIMITS: {
    pool: 'the job waits for a connection',
    acquireTimeoutMs: 'the job is tried again',
    statementTimeoutMs: 'the job is tried again',
    queryTimeoutMs: 'the job is tried again',
  },
  SWEEP_LIMITS: {
    staleSeconds: 'workers are not ready, and the overview of the console warns',
  },
  REPLICA_LIMITS: {
    responseTimeoutMs: 'lists are read from the primary',
    maxAgeMs: 'lists are read from the primary',
    acquireTimeoutMs: 'the list is read from the primary',
    statementTimeoutMs: 'the list is read from the primary',
    queryTimeoutMs: 'the list is read from the primary',
  },
  LIVE_LIMITS: {
    listeners: '503 with `Retry-After`',
    listenersOfUser: '429',
    unsentBytes: 'further events wait in the database',
    drainMs: 'the stream ends; the client can resume it',
    maxMissedEvents: 'an event `reset`: the client reads the lists',
  },
}

/** Limits that are defined next to the only code that uses them. */
const elsewhere: readonly (readonly [what: string, file: string, name: string, beyond: string])[] = [
  ['items of a page by default', 'src/web/api/paging.ts', 'DEFAULT_ITEMS', ''],
  ['items of a page', 'src/web/api/paging.ts', 'MAX_ITEMS', 'clamped'],
  ['people shown with a notification', 'src/persistence/notifications/list-notifications.ts', 'MAX_ACTORS', 'left out'],
  [
    'ms until the queue has acknowledged',
    'src/jobs/queues/queue-client.ts',
    'ACKNOWLEDGED_WITHIN_MS',
    '503 with `Retry-After`',
  ],
  [
    'ms for adding outbox jobs after a commit',
    'src/jobs/outbox/run-or-add.ts',
    'ADDED_WITHIN_MS',
    'the sweeper adds them',
  ],
  ['ms to connect to PostgreSQL', 'src/persistence/database/database.ts', 'CONNECT_TIMEOUT_MS', '503'],
  ['ms for a lock of PostgreSQL', 'src/persistence/database/database.ts', 'LOCK_TIMEOUT_MS', '503, or retried'],
  [
    'ms of an idle transaction',
    'src/persistence/database/database.ts',
    'IDLE_IN_TRANSACTION_TIMEOUT_MS',
    'it is rolled back',
  ],
]

/** Limits of received entities are in the protocol layer, which imports nothing; FEDERATION.md lists them. */
const protocol = `| XML: characters, levels, elements, attributes, distance to the first element | 4 194 304, 32, 20 000, 1 000, 65 536 | \`src/protocol/xml/xml.ts\` | \`InvalidEnvelope\` or \`InvalidPayload\`, dropped |
| bits of an RSA key | 1 024 to 8 192, exponent 3 or 65 537 | \`src/protocol/signatures/rsa.ts\` | the person is not found |
| characters of an address; of a guid | 255; 16 to 255 | \`src/protocol/address.ts\`, \`values.ts\` | \`ValidationError\`, dropped |
| unknown elements of a relayable; characters of a name, bytes of a text of them | 32; 64, 4 096 | \`src/protocol/entities/relayable-elements.ts\` | \`ValidationError\`, dropped |
| participants of a conversation | 256 | \`src/protocol/entities/conversations.ts\` | \`ValidationError\`, dropped |
| texts and lists of entities | as for clients, and as FEDERATION.md says | \`src/protocol/entities\` | \`ValidationError\`, dropped |`

/** Returns docs/limits.md, with values and reasons from the code. */
export function limitsPage(read: (path: string) => string): string {
  requireNamedLimits()
  return [
    '# Limits',
    '',
    'All fixed limits that an operator, a client or another pod can notice. Generated by `npm run limits` from the code; a test compares both.',
    'Configurable limits are in [settings.md](settings.md).',
    '',
    ...Object.entries(limitFiles).flatMap(([file, groups]) => {
      const source = read(file)
      return Object.entries(groups)
        .toSorted(([one], [other]) => source.indexOf(`const ${one} `) - source.indexOf(`const ${other} `))
        .flatMap(([name, group]) => section(file, name, group, source))
    }),
    '## Limits next to their code',
    '',
    '| Limit | Value | Where | Beyond it |',
    '| --- | --- | --- | --- |',
    ...elsewhere.map(([what, file, name, end]) =>
      row(what, valueIn(read(file), name, file), `\`${name}\` in \`${file}\``, end),
    ),
    '',
    '## Entities of other pods',
    '',
    '| Limit | Value | Where | Beyond it |',
    '| --- | --- | --- | --- |',
    protocol,
    '',
  ].join('\n')
}

/** A renamed limit must not lose its effect on the page. */
function requireNamedLimits(): void {
  const limits = new Set(
    Object.values(limitFiles).flatMap((groups) =>
      Object.entries(groups).flatMap(([name, group]) => Object.keys(group).map((key) => `${name}.${key}`)),
    ),
  )
  for (const [name, effects] of Object.entries(beyond)) {
    for (const key of Object.keys(effects)) {
      if (!limits.has(`${name}.${key}`)) throw new Error(`There is no limit ${key} in ${name}: correct its effect.`)
    }
  }
}

function section(file: string, name: string, group: Group, source: string): readonly string[] {
  const begin = source.indexOf(`export const ${name} `)
  const inside = source.slice(begin, source.indexOf('} as const', begin))
  const rows = Object.entries(group).map(([key, value]) => {
    const [, comment] = new RegExp(`/\\*\\*\\s((?:(?!\\*/)[^])*?)\\s\\*/\\n  ${key}:`).exec(inside) ?? []
    if (comment === undefined) throw new Error(`${key} in ${name} has no comment: say why it has this value.`)
    return row(`\`${key}\``, formatValue(value), textOf(comment), beyond[name]?.[key] ?? '')
  })
  return [
    `## ${name}`,
    '',
    `In \`${file}\`. ${aboutOf(source, name)}`.trim(),
    '',
    '| Limit | Value | Reason | Beyond it |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
  ]
}

function aboutOf(source: string, name: string): string {
  const [, about = ''] = new RegExp(`/\\*\\*\\s((?:(?!\\*/)[^])*?)\\s\\*/\\nexport const ${name} `).exec(source) ?? []
  return textOf(about)
}

/** A comment of one or more lines as one line. */
function textOf(comment: string): string {
  return comment.replace(/\s*\n?\s*\* /g, ' ').trim()
}

/** Reads a number from the source, which may be a product. */
function valueIn(source: string, name: string, file: string): string {
  const [, text] = new RegExp(`^(?:export )?const ${name} = ([0-9_* ]+)$`, 'm').exec(source) ?? []
  if (text === undefined) throw new Error(`There is no number ${name} in ${file}.`)
  return formatValue(
    text.split('*').reduce((product, factor) => product * Number(factor.replaceAll('_', '').trim()), 1),
  )
}

function formatValue(value: unknown): string {
  if (value instanceof Date) return value.toISOString().slice(0, 10)
  if (Array.isArray(value)) return value.map(formatValue).join(', ')
  return String(value).replace(/\B(?=(\d{3})+$)/g, ' ')
}

function row(...cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}
