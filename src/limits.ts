/** Fixed limits, independent of settings. The name contains the unit, the comment the reason. `npm run limits` writes docs/limits.md from them. */

/** A connection and its requests. */
export const HTTP_LIMITS = {
  /** Room for a token, some proxy addresses and a long query, but not for a header flood. */
  headerBytes: 16 * 1024,
  /** Two thousand clients that send one byte a minute must not hold two thousand connections. */
  headersTimeoutMs: 10_000,
  /** Enough for a body of maximum size over a slow phone connection. */
  requestTimeoutMs: 30_000,
  /** Enough for the largest picture over a slow phone connection. Only requests with a token may upload one. */
  longRequestTimeoutMs: 180_000,
  /** Waiting time in the queue, before the body timeout starts. With the processing of the photo it is shorter than usual proxy timeouts. */
  turnTimeoutMs: 25_000,
  /** Without traffic in either direction the peer is gone. */
  idleTimeoutMs: 60_000,
  /** Longer than the 60 seconds of usual proxies, so that the proxy closes first and never uses a closed socket. */
  keepAliveTimeoutMs: 65_000,
  /** How often these timeouts are checked, and therefore how late they may fire. */
  connectionsCheckMs: 5_000,
  /** After this number a client reconnects and may reach another process. */
  requestsPerSocket: 1_000,
  /** Pipelined requests before the first response. Clients and proxies wait; an attacker could start thousands at once. */
  requestsAhead: 10,
  /** Below the file descriptor limit of an ordinary process. */
  connections: 2_000,
  /** Per address that is no trusted proxy; an IPv6 /64 counts as one. Enough for a large network behind one address. */
  connectionsOfAddress: 200,
  /** All /64 networks of an IPv6 /48 together: one customer usually has all of them. */
  connectionsOfSite: 600,
  /** Of `connections`. Above it, each new connection closes an idle one of the address with the most. */
  connectionsFilledPercent: 90,
  /** The longest text has 65 535 characters of at most four bytes, and JSON may write six bytes for one. */
  apiBodyBytes: 1024 * 1024,
  /** Page links contain their whole query; no other URL is long. */
  urlBytes: 8 * 1024,
  /** A guid or a tag has up to 255 characters, counted after decoding. */
  pathParameterCharacters: 300,
  queryParameterCharacters: 1_024,
  /** API forms have a few dozen fields. Each field name is parsed. */
  formFields: 1_000,
  /** `poll[answers][]` has two levels below its name. */
  formDepth: 4,
  /** Delay of the event loop in three of five samples. Above it a retry serves the client better than waiting. */
  eventLoopDelayMs: 1_000,
  /** Retry-After when a dependency is unavailable or overloaded. */
  retryAfterSeconds: 10,
  /** Time for running requests at shutdown. */
  closeTimeoutMs: 10_000,
  /** A database that needs longer for an empty query could not serve a request either. */
  readinessTimeoutMs: 1_000,
} as const

export type HttpLimits = { readonly [Name in keyof typeof HTTP_LIMITS]: number }

/** Ports that are tried after the default one, for several pods on one machine. */
export const ADMIN_PORTS_TRIED = 20

/** The read replica for lists. What it does not deliver in time is read from the primary. */
export const REPLICA_LIMITS = {
  /** A user who has written reads from the primary at least until the next check. */
  checkIntervalMs: 250,
  /** Longer than a busy process needs to return to a check. Clients wait this long for a frozen replica. */
  responseTimeoutMs: 1_500,
  /** Age of a list. A client that polls every few seconds does not notice it. */
  maxAgeMs: 5_000,
  /** For a connection, a statement and a response. With those of the primary they stay below what a client waits. */
  acquireTimeout: 1_000,
  statementTimeout: 2_000,
  queryTimeout: 2_500,
} as const

/** Texts of users, in characters as users count them, and the number of their parts. */
export const TEXT_LIMITS = {
  /** Posts, comments, messages and bios: what every pod of the network accepts. */
  textCharacters: 65_535,
  subjectCharacters: 255,
  /** Displayed name of a person. */
  nameCharacters: 32,
  /** Location and gender. */
  profileLineCharacters: 255,
  tagsOfPerson: 5,
  /** A poll question, a poll answer, the name of a place. */
  labelCharacters: 255,
  pollAnswers: 100,
  photosOfPost: 100,
  aspectNameCharacters: 20,
  tagCharacters: 255,
  recipientsOfConversation: 100,
  /** Minimum. */
  passwordCharacters: 10,
  /** Limits the cost of hashing. */
  passwordBytes: 128,
} as const

/** Writes of one user through the API, over all clients. The number of writes is a setting. */
export const WRITE_LIMITS = {
  /** The period of the setting; each web process counts separately. */
  perSeconds: 60,
  /** Users counted at the same time. */
  users: 20_000,
} as const

/** Requests to other pods, and how much of a response is read. */
export const REMOTE_LIMITS = {
  /** DNS, TCP and TLS together. A slower pod counts as unreachable. */
  connectMs: 5_000,
  /** One DNS query; it is sent twice within `connectMs`. */
  dnsTryMs: 1_500,
  /** Delay before the next address of a name is tried in parallel. The first address may be dead. */
  connectAttemptMs: 1_000,
  /** From the call to the last byte, including redirects and waiting for a slot. */
  exchangeMs: 30_000,
  headerBytes: 16 * 1024,
  /** WebFinger, hCard and NodeInfo have a few kilobytes; a key or a long list of links fits many times. */
  discoveryBytes: 128 * 1024,
  /** The largest envelope that is accepted. */
  fetchBytes: 8 * 1024 * 1024,
  /** Read from an unneeded response, so that its connection can be reused. */
  unreadBytes: 4 * 1024,
  unreadMs: 1_000,
  /** From http to https, from www to the bare name, and from one owner to the next. */
  redirects: 4,
  /** Concurrent exchanges of this process. */
  atOnce: 160,
  /** A slow pod occupies at most this number of slots. */
  fetchesPerHost: 8,
  deliveriesPerHost: 4,
  /** Requests to a third pod that an unknown sender can cause. */
  fetchesPerHostPerMinute: 600,
  /** Shorter than the idle timeout of usual servers that do not announce one, so that they do not close while this pod writes. */
  idleMs: 4_000,
  /** Maximum announced idle timeout that is used. Idle connections to thousands of pods cost file descriptors. */
  longestIdleMs: 30_000,
  /** Maximum accepted Retry-After. */
  retryAfterSeconds: 24 * 60 * 60,
} as const

export type RemoteLimits = { readonly [Name in keyof typeof REMOTE_LIMITS]: number }

/** Fields of an hCard. A longer value is truncated or refused. */
export const HCARD_LIMITS = {
  guidCharacters: 255,
  nicknameCharacters: 255,
  /** UTF-16 units, including blanks after the name. */
  nameCharacters: 255,
  flagCharacters: 10,
  keyCharacters: 4 * 1024,
  /** Nested elements. A closing tag without an open element makes the parser walk through all of them. */
  levels: 200,
  /** After each of these chunks the parser stops if all fields are complete. */
  charactersAtOnce: 4 * 1024,
} as const

/** Background work of the processes. */
export const WORK_LIMITS = {
  /** Starts of a job whose process died while running it; it runs alone since then. */
  startsAlone: 5,
  /** Overdue rows per run of the sweeper. */
  sweptRows: 1_000,
  /** Jobs in a queue above which the sweeper adds none. */
  sweptInto: 5_000,
  /** From the signal to the exit: requests, jobs, pools, threads. Supervisors must wait a little longer. */
  closeMs: 30_000,
} as const

/** Threads for private-key work, per process. Their number is a setting. */
export const THREAD_LIMITS = {
  /** Tasks waiting for a thread. A signature takes some milliseconds and its timeout starts here, so later tasks would time out. */
  tasksQueued: 200,
  /** Parsing one document of another pod, including waiting for a thread. The longest legal document takes some milliseconds. */
  documentMs: 10_000,
} as const

/** Public content for anonymous requests. */
export const SERVE_LIMITS = {
  /** Cached signed envelopes for fetch requests. */
  envelopes: 1_000,
  envelopeBytes: 32 * 1024 * 1024,
  /** A photo may be removed from its post and a root may be deleted; nothing else in an envelope changes. */
  envelopeAgeMs: 60_000,
  /** A fifth of a second on two threads. */
  signaturesUnderWay: 64,
  /** Newest posts on the page of a person, and for pods that have just discovered the person. */
  postsOfPerson: 15,
  commentsOnPage: 50,
  /** Of a comment, a profile and each post of a list: only this part is read, scanned and shown. */
  excerptCharacters: 2_000,
  /** People and posts mentioned on one page; each is looked up. */
  namesOnPage: 200,
  /** Counting reads whole tables. */
  usageAgeMs: 60 * 60 * 1_000,
  /** A user is waiting, and the other pod may be slow. */
  discoveryMs: 8_000,
} as const

/** Public pages of posts and people. Their texts come from other people. */
export const PAGE_LIMITS = {
  /** A page with many readers is rendered a few times a minute. */
  cachedMs: 5_000,
  cachedPages: 500,
  cachedBytes: 16 * 1024 * 1024,
  /** The longest post with the worst Markdown takes a third of a second. Requests that wait longer get 503. */
  renderMs: 4_000,
  rendersQueued: 20,
  threadIdleMs: 60_000,
  threadMegabytes: 64,
  /** The period of the setting PAGE_LIMIT, per network address. */
  perSeconds: 60,
  /** Network addresses counted at the same time. */
  sources: 20_000,
} as const

/** Look-ups of people and links without an account. */
export const LOOK_UP_LIMITS = {
  /** How long a request waits for a worker. Then it gets a page that reloads itself. */
  waitMs: 2_000,
  lookEveryMs: 100,
  reloadSeconds: 3,
  reloads: 5,
  /** Per network address, and in total; each web process counts separately. */
  ofAddress: 30,
  ofAll: 300,
  perSeconds: 60,
  /** Network addresses counted at the same time. */
  sources: 20_000,
  /** Waiting requests in one web process. */
  waitingAtOnce: 32,
  /** Concurrent look-ups in one worker, and those of one host. */
  atOnce: 32,
  atOnceOfHost: 4,
} as const

/** Public posts that are fetched from the pod of a person when the person is found. */
export const PERSON_STREAM_LIMITS = {
  /** One page of diaspora*. */
  posts: 15,
  bytes: 1024 * 1024,
  requestMs: 10_000,
  /** The stream with all its posts. */
  allMs: 30_000,
  /** For what one post needs, such as the root of a reshare. */
  fetchesOfPost: 2,
} as const

/** Look-ups caused by received content. */
export const LOOKUP_LIMITS = {
  /** A reshare of a reshare, or a link in a linked post. A longer chain is probably an attack. */
  chainDepth: 5,
  linksOfText: 10,
  /** A linked post, and the links in it. */
  linkDepth: 2,
  /** Entities fetched because of one message. Without a total, ten links per text on two levels are 110 requests. */
  fetchesOfMessage: 30,
  /** Unknown people mentioned in a text; each causes a look-up at a pod. */
  unknownPeopleOfText: 50,
  /** People and tags stored with a text. */
  mentionsOfText: 100,
  tagsOfText: 100,
  /** A failed look-up is not repeated by every request. */
  failureRememberedMs: 60_000,
  failuresRemembered: 10_000,
  /** Maximum age of a name or a picture. */
  personFreshMs: 24 * 60 * 60 * 1_000,
  /** Parsed public keys, each of a few kilobytes. */
  keysKept: 10_000,
  /** Private keys of local people who receive private messages. */
  privateKeysKept: 1_000,
  /** The front page of a pod, including what it does to render. */
  frontPageMs: 12_000,
  frontPageRedirects: 3,
  /** Maximum of browsers and other pods. */
  urlCharacters: 2_048,
  /** Clocks of other pods may be wrong; times further in the future are not accepted. */
  clockSkewMs: 5 * 60_000,
  /** The network did not exist before. */
  oldestPost: new Date('2000-01-01T00:00:00Z'),
} as const

/** Messages of other pods until they are stored. */
export const RECEIVE_LIMITS = {
  /** The largest legal message is a text of 65 535 character references in an encrypted envelope: about a megabyte. */
  bodyBytes: 8 * 1024 * 1024,
  /** Limits what a stalled or failed job holds. A larger message is a job of its own. */
  messagesPerJob: 128,
  bytesPerJob: 256 * 1024,
  /** While two jobs are being added to the queue, the next one collects messages. */
  jobsUnderWay: 2,
  /** From the last byte of a message to its answer. After that the answer is 503, and the sender retries. */
  acknowledgedMs: 1_000,
  /** Messages in the queue, over all senders. */
  queuedMessages: 500_000,
  /** In a longer queue, messages are counted per source. */
  fairFromMessages: 1_000,
  /** The same for a queue of few large messages. */
  fairFromBytes: 16 * 1024 * 1024,
  /** Messages of one source in a long queue. Further ones are queued behind those of other sources … */
  messagesApart: 1_000,
  /** The same in bytes: a few messages of maximum size. */
  bytesApart: 16 * 1024 * 1024,
  /** … and beyond this number they are refused. */
  messagesOfSource: 100_000,
  /** Of `INBOUND_BYTES` per source: at least four sources are needed to fill it. */
  bytesPercentOfSource: 25,
  /** Shares that all /64 networks of an IPv6 /48 have together. */
  sharesOfSite: 2,
  /** Sources counted at the same time. */
  sources: 100_000,
  lookEveryMs: 1_000,
  /** Retry-After when a sender, or all senders, have sent too much. */
  retryAfterSeconds: 120,
  /** Cached guids of local people, so that a private message needs no database query. A guid never changes. */
  recipients: 10_000,
  recipientAgeMs: 10 * 60_000,
  /** Guids in one database query. */
  recipientsPerQuestion: 128,
  /** A longer private body is not examined before it is queued: eight megabytes of brackets would take a second. */
  examinedCharacters: 64 * 1024,
} as const

/**
 * Waiting messages and dead letters. An unproven message names an unknown signer. Anyone can send any number of them, so their
 * limits are far below those of verified messages.
 */
export const WAITING_LIMITS = {
  /** Verified messages, in total and per host of the signer. */
  messages: 500_000,
  bytes: 1024 * 1024 * 1024,
  messagesOfHost: 50_000,
  bytesOfHost: 128 * 1024 * 1024,
  /** Unproven messages, in total and per host that they name. */
  unprovenMessages: 20_000,
  unprovenBytes: 64 * 1024 * 1024,
  unprovenMessagesOfHost: 1_000,
  unprovenBytesOfHost: 4 * 1024 * 1024,
  /** Nearly all legitimate messages are smaller. */
  unprovenBytesOfMessage: 64 * 1024,
  /** A longer one is kept if it may be legal: the first post of a new person may have the longest legal text … */
  longestUnprovenBytes: 2 * 1024 * 1024,
  /** … but all of these share this size; the oldest is dropped for a new one. */
  longUnprovenBytes: 32 * 1024 * 1024,
  /** Waiting time of an unproven message if no pod has ever answered at its host. A little longer than the attempts of its look-up. */
  unprovenPatienceSeconds: 20 * 60,
  /** Dead letters, and the bytes of those with a payload. Unproven ones are kept without payload. */
  deadMessages: 100_000,
  deadBytes: 1024 * 1024 * 1024,
  /** How often the totals are checked. */
  lookEveryMs: 10_000,
  /** Rows deleted by one statement. */
  rowsAtOnce: 1_000,
} as const

/** Look-ups of signers that are unknown and not proven by a signature. */
export const SIGNER_LIMITS = {
  /** New signers on hosts where no pod has answered, per network address and minute; each worker counts separately. */
  unprovenOfSourcePerMinute: 600,
  /** Network addresses counted at the same time. */
  sources: 20_000,
  /** Concurrent look-ups at one host; one until the host has answered. */
  atOnce: 4,
  /** At a host that has never answered. A slower first answer is not worth a slot. */
  unknownHostMs: 6_000,
  knownHostMs: 15_000,
  /** Attempts of one look-up, and the waits between them in seconds. */
  triesAtUnknownHost: 3,
  triesAtKnownHost: 6,
  retrySeconds: [30, 300, 1_800, 7_200, 7_200],
  /** Delay for a host whose budget of the minute is used up. */
  busySeconds: 15,
  /** After this time a host yields its slot and is queued again behind all others. */
  drainMs: 10_000,
} as const

/** Deliveries to other pods. The values that other pods notice are those of the protocol. */
export const DELIVERY_LIMITS = {
  /** Refusals of one delivery: about seventeen hours. */
  tries: 10,
  /** Sharing matters longer than a post: about thirteen days. */
  triesOfContact: 20,
  /** Failures in a row after which the delay of a pod stays the same: about six hours. */
  podFailures: 9,
  /** A pod that is offline for longer gets nothing new. */
  asleepAfterDays: 14,
  /** Rows of one pod read at a time. An envelope may have megabytes. */
  rowsAtOnce: 20,
  /** Relays and participations per round, … */
  relaysInRound: 3,
  /** … and the maximum pause after such a round. The pause is as long as the round: a flood takes half of the time. */
  relayPauseMs: 60,
  /** Concurrent deliveries to one pod, after a first success. The HTTP client has the same limit. */
  atOnce: 4,
  /** Relays per dispatch; each may have hundreds of deliveries. */
  relaysAtOnce: 32,
  /** Waiting relays for a pod that has never answered. */
  relaysUnanswered: 5,
  /** Subscriptions to one post from pods that have never answered. */
  participantsUnanswered: 100,
  /** After this time a pod yields its slot and is queued again. A last exchange still ends before the deadline of the job. */
  drainMs: 12_000,
  /** From the first byte to the status. */
  exchangeMs: 30_000,
  /** Proven pods that may use all of that time for a first attempt. If there are more, those above `patienceMs` yield. */
  silentAtOnce: 16,
  patienceMs: 1_500,
  /** Time until another worker may serve the pod of a worker that died. Longer than a drain with its last exchange. */
  leaseMs: 60_000,
  /** Deliveries in a row that end in a redirect, before the pod is checked. */
  redirects: 3,
  /** Pods checked per run (a run per minute), and the time since their last check. */
  checksAtOnce: 60,
  checkEveryHours: 24,
  /** For an offline pod that has sent something. */
  recheckMinutes: 30,
} as const

export type DeliveryLimits = { readonly [Name in keyof typeof DELIVERY_LIMITS]: number }

/** Searches for people. */
export const SEARCH_LIMITS = {
  /** One character matches nearly everyone. */
  shortest: 2,
  /** How long a user waits for another pod. A later result is available for the next search. */
  discoveryMs: 2_000,
  lookEveryMs: 100,
  /** Searches that wait for other pods in one web process, and those of one user. All others use only known people. */
  remoteLookUpsAtOnce: 32,
  remoteLookUpsOfUser: 3,
  /** Each one is another joined table; planning takes seconds for a hundred. */
  filters: 10,
} as const

/** Counts of what a user has not read, which clients poll. */
export const UNREAD_LIMITS = {
  /** Notifications that are counted, and conversations. */
  counted: 1_000,
} as const

/** Compression of responses, in bytes of the text. */
export const COMPRESSION_LIMITS = {
  /** A smaller response fits in one packet as it is. */
  fewestBytes: 1_024,
  /** Up to here it takes 0.1 ms, less than a thread would cost; everything larger is compressed in a thread. */
  bytesOnEventLoop: 16 * 1_024,
} as const

/** Uploaded pictures. The maximum bytes of one picture are a setting. */
export const PHOTO_LIMITS = {
  /** Concurrent uploads in one web process, and per user. Clients send a few in parallel, not dozens. */
  uploadsAtOnce: 32,
  uploadsOfPerson: 4,
  /** Photos per user; their disk space is limited by the setting PHOTO_QUOTA. */
  photosOfPerson: 20_000,
  /** Forms read before their token is known: per web process, and per network address. */
  uploadsBeforeToken: 8,
  uploadsBeforeTokenOfAddress: 2,
  /** Waiting uploads, not read before their turn. Clients may send a whole album at once. */
  uploadsWaiting: 256,
  uploadsWaitingOfPerson: 24,
  /** How many times the largest picture is read to its end, so that the client can receive the 413. */
  timesRead: 4,
  /** From the last byte to the photo. After that the client gets 503 and retries. */
  madeWithinMs: 25_000,
  /** Interval of checks for the result: short at first, then longer. */
  firstLookMs: 20,
  lastLookMs: 250,
  /** Characters of a photo's description; of a longer one from another pod this many are shown. */
  altTextCharacters: 1_500,
  /** An upload has a few short options; the longest is the description. */
  formFields: 50,
  fieldBytes: 6 * 1024,
  fieldNameBytes: 100,
  /** The longest side of a JPEG. */
  sidePixels: 65_535,
  /** As counted in workers/handlers/make-picture.ts. Measured: the worst picture needs half a gigabyte in the worker. */
  pixels: 100_000_000,
  /** Larger pictures are processed one after the other. */
  pixelsSideBySide: 25_000_000,
  frames: 1_000,
  /** For each size. */
  sizeSeconds: 15,
  /** An upload that is not a photo after this time never becomes one. */
  uploadAgeMs: 60 * 60_000,
  sweepEveryMs: 10 * 60_000,
} as const

/** Event streams, which clients keep open for hours. */
export const LIVE_LIMITS = {
  /** Per process; the other connections are for requests. */
  listeners: 1_500,
  /** Phones, tablets, and connections that a client forgot to close. */
  listenersOfUser: 20,
  /** Proxies close silent connections after a minute, some after half a minute. */
  heartbeatMs: 20_000,
  /** The stream of a revoked token ends within this time; it sends no event from the moment of revocation. */
  tokensAgainMs: 30_000,
  /** Written but not read by the client. Further events wait in the database until the client has read them. */
  unsentBytes: 64 * 1024,
  /** Events written between two checks of `unsentBytes`. The largest post has a few hundred kilobytes. */
  writtenAtOnce: 10,
  drainMs: 30_000,
  /** Events searched for a client that reconnects. A client that missed more should read the lists. */
  missed: 5_000,
  /** Clients that catch up at the same time; each uses a database connection. */
  catchingUpAtOnce: 2,
  showingAtOnce: 3,
  /** Retry while the database is unavailable. */
  againAfterMs: 1_000,
  reportEveryMs: 60_000,
  /** Sent to clients: minimum delay before a reconnect, and its random spread. */
  retryMs: 2_000,
  retrySpreadMs: 3_000,
} as const

export type LiveLimits = { readonly [Name in keyof typeof LIVE_LIMITS]: number }

/** Sign-in of users and authorization of clients. */
export const OIDC_LIMITS = {
  /** A form has a few hundred bytes; a long list of redirect addresses fits. */
  bodyBytes: 16 * 1024,
  accessTokenSeconds: 86_400,
  codeSeconds: 600,
  idTokenSeconds: 1_800,
  /** Since the last use. */
  refreshTokenSeconds: 400 * 86_400,
  /** The last use is written at most this often. */
  refreshTokenUseSeconds: 86_400,
  /** Time to find the password or to create an account first. */
  interactionSeconds: 3_600,
  /** Pending authorization requests in total; the oldest without a sign-in are deleted first. */
  interactions: 5_000,
  /** Pending authorization requests of one browser; a new one replaces the oldest. */
  requestsOfBrowser: 8,
  /** New authorization requests of a web process between two checks of the total. */
  interactionsBetweenTrims: 50,
  /** `state`, and `nonce`. */
  stateBytes: 1_024,
  sessionSeconds: 14 * 86_400,
  /** The periods of the settings that limit one network address. */
  signInsPerSeconds: 300,
  clientsPerSeconds: 3_600,
  tokensPerSeconds: 60,
  authorizationsPerSeconds: 300,
  /** Wrong passwords of one network address for one account. Each further one doubles the delay. */
  wrongPasswords: 5,
  firstWaitSeconds: 5,
  longestWaitSeconds: 900,
  /** The document that lists which redirect addresses belong together. */
  sectorDocumentBytes: 64 * 1024,
  /** Network addresses counted at the same time, for each of these. */
  sources: 20_000,
} as const
