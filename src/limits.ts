/** The ceilings that hold whatever the settings say: each with its unit in the name and its reason beside it. */

/** Of a connection and of a request on it. */
export const HTTP_LIMITS = {
  /** A token, a few addresses of proxies and a long query fit; a flood of headers does not. */
  headerBytes: 16 * 1024,
  /** Two thousand clients that send a byte a minute must not hold two thousand connections. */
  headersTimeoutMs: 10_000,
  /** A body of the largest size over a slow phone line still arrives in this time. */
  requestTimeoutMs: 30_000,
  /** The largest picture over a slow phone line; only who has a token may upload one. */
  longRequestTimeoutMs: 180_000,
  /** In line, before the time for the body begins. Together with the making of a photo this is less than usual proxies wait. */
  turnTimeoutMs: 25_000,
  /** Nothing in either direction: the other side is gone. */
  idleTimeoutMs: 60_000,
  /** Longer than the sixty seconds of usual proxies, so that the proxy closes first and never meets a closed socket. */
  keepAliveTimeoutMs: 65_000,
  /** How often the times above are looked at; it is also how late they may be noticed. */
  connectionsCheckMs: 5_000,
  /** After so many requests a client connects anew and may reach another process. */
  requestsPerSocket: 1_000,
  /** Sent before the first of them is answered. Clients and proxies wait; who does not could make us begin thousands at once. */
  requestsAhead: 10,
  /** Below the file descriptors an ordinary process has. */
  connections: 2_000,
  /** Of one address that is no trusted proxy; a /64 of IPv6 counts as one. Enough for a large network behind one address. */
  connectionsOfAddress: 200,
  /** Of `connections`: from here on a new connection ends an idle one of the address with the most. */
  connectionsFilledPercent: 90,
  /** The longest text of the API has 65 535 characters, four bytes each at most, and JSON may write six for one. */
  apiBodyBytes: 1024 * 1024,
  /** Links of pages carry their whole query; nothing else is long. */
  urlBytes: 8 * 1024,
  /** A guid has up to 255 characters, and so has a tag; counted when they are decoded. */
  pathParameterCharacters: 300,
  queryParameterCharacters: 1_024,
  /** No form of the API has more than a few dozen; each costs a walk through its name. */
  formFields: 1_000,
  /** `poll[answers][]` has two levels below its name. */
  formDepth: 4,
  /** The mean delay of a second: a client that waits longer for its turn is better served by another try. */
  eventLoopDelayMs: 1_000,
  /** What a client is asked to wait when something we need is away or too busy. */
  retryAfterSeconds: 10,
  /** Requests under way when the process is told to stop. */
  closeTimeoutMs: 10_000,
  /** A database that takes longer for nothing at all would not serve a request either. */
  readinessTimeoutMs: 1_000,
} as const

export type HttpLimits = { readonly [Name in keyof typeof HTTP_LIMITS]: number }

/** How far to look for a free port beside the usual one when several pods share a machine. */
export const ADMIN_PORTS_TRIED = 20

/** Of the replica that lists are read from; what it does not give in time the primary gives. */
export const REPLICA_LIMITS = {
  /** Whoever has written something reads from the primary until the next look at least. */
  lookEveryMs: 250,
  /** Longer than a busy process needs to come back to a look; meanwhile clients wait for one that is frozen. */
  silentForMs: 1_500,
  /** Of a list; as long as a client that looks for news every few seconds does not notice. */
  oldestMs: 5_000,
  /** Of a connection, a statement and an answer: together with those of the primary below what a client waits for. */
  acquireTimeout: 1_000,
  statementTimeout: 2_000,
  queryTimeout: 2_500,
} as const

/** What people say, in characters as they count them, and how much of it. */
export const TEXT_LIMITS = {
  /** Of posts, comments, messages and bios: what every pod of the network takes. */
  textCharacters: 65_535,
  subjectCharacters: 255,
  /** Of a person, as others see it. */
  nameCharacters: 32,
  /** Location and gender. */
  profileLineCharacters: 255,
  tagsOfPerson: 5,
  /** A question, an answer, the name of a place. */
  labelCharacters: 255,
  pollAnswers: 100,
  photosOfPost: 100,
  aspectNameCharacters: 20,
  tagCharacters: 255,
  recipientsOfConversation: 100,
  /** At least. */
  passwordCharacters: 10,
  /** Bounds the work of hashing, whoever sends the password. */
  passwordBytes: 128,
} as const

/** Of what one person may change through the API, with all of their clients; how often is a setting. */
export const WRITE_LIMITS = {
  /** The time in which the setting counts; each web process counts for itself. */
  perSeconds: 60,
  /** People who are counted at a time. */
  users: 20_000,
} as const

/** What this pod asks of other pods, and how much of an answer it takes. */
export const REMOTE_LIMITS = {
  /** DNS, TCP and TLS together: who needs longer is away. */
  connectMs: 5_000,
  /** One question to a name server; it is put twice, within the time above. */
  dnsTryMs: 1_500,
  /** Before the next address of a name is tried beside the first one: no pod is a second away, a dead address may come first. */
  connectAttemptMs: 1_000,
  /** From the call to the last byte, redirects and waiting for a turn included. */
  exchangeMs: 30_000,
  headerBytes: 16 * 1024,
  /** WebFinger, hCard and NodeInfo are a few kilobytes; a key or a long list of links fits many times. */
  discoveryBytes: 128 * 1024,
  /** The largest envelope others may send us. */
  fetchBytes: 8 * 1024 * 1024,
  /** Read from an answer that nobody needs, so that its connection can be used again; beyond it is closed. */
  unreadBytes: 4 * 1024,
  unreadMs: 1_000,
  /** From http to https, from www to the bare name, and from one owner to the next. */
  redirects: 4,
  /** Exchanges under way in this process, whatever they are. */
  atOnce: 160,
  /** A slow pod holds no more of them than this. */
  fetchesPerHost: 8,
  deliveriesPerHost: 4,
  /** What a stranger may make us ask of a third pod. */
  fetchesPerHostPerMinute: 600,
  /** Shorter than the idle time of any usual server that does not tell: it must not close while we write. */
  idleMs: 4_000,
  /** What a server may promise to wait; idle connections to thousands of pods cost descriptors. */
  longestIdleMs: 30_000,
  /** What another pod may ask us to wait. */
  retryAfterSeconds: 24 * 60 * 60,
} as const

export type RemoteLimits = { readonly [Name in keyof typeof REMOTE_LIMITS]: number }

/** What is read of the page that says who a person is; what is longer than a person may have is cut and refused. */
export const HCARD_LIMITS = {
  guidCharacters: 255,
  nicknameCharacters: 255,
  /** UTF-16 units, with blanks behind the name. */
  nameCharacters: 255,
  flagCharacters: 10,
  keyCharacters: 4 * 1024,
  /** Of elements. A closing tag that fits no open element makes the parser look at all of them. */
  levels: 200,
  /** After each of these the parser stops if nothing is missing any more. */
  charactersAtOnce: 4 * 1024,
} as const

/** What the processes do behind everything else. */
export const WORK_LIMITS = {
  /** Of a job that was in hand when its process ended, and runs alone since then. */
  startsAlone: 5,
  /** Of what was left behind, in one turn of the sweeper. */
  sweptRows: 1_000,
  /** Jobs in a queue: one that is this long has enough to do. */
  sweptInto: 5_000,
  /** From the signal to the end: requests, jobs, pools, threads. Whoever supervises us waits a little longer. */
  closeMs: 30_000,
} as const

/** Threads for work with keys, in each process. How many there are is a setting. */
export const THREAD_LIMITS = {
  /** Not begun yet. A signature takes some milliseconds, and its time limit counts from here: whoever comes later would miss it. */
  tasksQueued: 200,
  /** To read one document of another pod, waiting for a thread included. The longest legal one takes some milliseconds. */
  documentMs: 10_000,
} as const

/** What everybody may ask for without saying who they are. */
export const SERVE_LIMITS = {
  /** Envelopes that are signed already, for those who fetch. */
  envelopes: 1_000,
  envelopeBytes: 32 * 1024 * 1024,
  /** A photo may leave its post and a root may go; nothing else about an envelope changes. */
  envelopeAgeMs: 60_000,
  /** A fifth of a second of two threads. */
  signaturesUnderWay: 64,
  /** The newest posts of a person, on their page and for pods that have just met them. */
  postsOfPerson: 15,
  commentsOnPage: 50,
  /** Of a comment, a profile and each post where there are several: only this much is read, scanned and shown. */
  excerptCharacters: 2_000,
  /** People and posts that the texts of one page may name: each is looked up. */
  namesOnPage: 200,
  /** Counting goes through whole tables. */
  usageAgeMs: 60 * 60 * 1_000,
  /** Somebody is in front of the screen, and another pod may be slow. */
  discoveryMs: 8_000,
} as const

/** Pages that anybody may request: posts and people. Their texts come from other people. */
export const PAGE_LIMITS = {
  /** Long enough that a page which many people request is rendered a few times a minute. */
  cachedMs: 5_000,
  cachedPages: 500,
  cachedBytes: 16 * 1024 * 1024,
  /** The longest post of the worst Markdown takes a third of a second; requests that wait longer get a 503. */
  renderMs: 4_000,
  rendersQueued: 20,
  threadIdleMs: 60_000,
  threadMegabytes: 64,
  /** The time in which the setting PAGE_LIMIT counts the pages of one network address. */
  perSeconds: 60,
  /** Network addresses that are counted at a time. */
  sources: 20_000,
} as const

/** Look-ups of people and links that anybody may request without an account. */
export const LOOK_UP_LIMITS = {
  /** How long a request waits for a worker; then a page says that the search continues, and reloads itself. */
  waitMs: 2_000,
  lookEveryMs: 100,
  reloadSeconds: 3,
  reloads: 5,
  /** Of one network address, and of all; each web process counts for itself. */
  ofAddress: 30,
  ofAll: 300,
  perSeconds: 60,
  /** Network addresses that are counted at a time. */
  sources: 20_000,
  /** Requests that wait in one web process. */
  waitingAtOnce: 32,
  /** Look-ups in hand in one worker, and those of one host. */
  atOnce: 32,
  atOnceOfHost: 4,
} as const

/** The public posts of a person that are fetched from their pod when the person is found. */
export const PERSON_STREAM_LIMITS = {
  /** As many as diaspora* has on a page. */
  posts: 15,
  bytes: 1024 * 1024,
  requestMs: 10_000,
  /** The stream with all its posts. */
  allMs: 30_000,
  /** For what one post needs, such as the root of a reshare. */
  fetchesOfPost: 2,
} as const

/** What a stranger's word may make us look for. */
export const LOOKUP_LIMITS = {
  /** A reshare of a reshare, a link in a linked post: who goes on for longer leads us around. */
  chainDepth: 5,
  linksOfText: 10,
  /** A linked post, and what that links to. */
  linkDepth: 2,
  /** Entities fetched because of one message: without a bound in all, ten links a text and two levels are 110 requests. */
  fetchesOfMessage: 30,
  /** People that nobody here knows and a text names; each is asked for at a pod. */
  strangersOfText: 50,
  /** People and tags that are kept with a text. */
  mentionsOfText: 100,
  tagsOfText: 100,
  /** Who could not be found is not looked for again by everybody who comes by. */
  failureRememberedMs: 60_000,
  failuresRemembered: 10_000,
  /** A name or a picture may be this old. */
  personFreshMs: 24 * 60 * 60 * 1_000,
  /** Parsed keys, each of a few kilobytes. */
  keysKept: 10_000,
  /** Of people who live here and get private messages. */
  privateKeysKept: 1_000,
  /** The front page of a pod, with whatever it does to be shown. */
  frontPageMs: 12_000,
  frontPageRedirects: 3,
  /** As long as browsers and other pods take. */
  urlCharacters: 2_048,
  /** Clocks of other pods are wrong; the future is not. */
  clockSkewMs: 5 * 60_000,
  /** The network is younger than this. */
  oldestPost: new Date('2000-01-01T00:00:00Z'),
} as const

/** What may come in from other pods, and how much of it may be here before it is taken in. */
export const RECEIVE_LIMITS = {
  /** The worst legal message is a text of 65 535 references to characters, in an envelope, in a coat: a megabyte. */
  bodyBytes: 8 * 1024 * 1024,
  /** A job that stalls or fails never holds many; a larger message goes alone. */
  messagesPerJob: 128,
  bytesPerJob: 256 * 1024,
  /** While two jobs are on their way to the queue, the next one grows. */
  jobsUnderWay: 2,
  /** From the last byte of a message to its answer; then it is 503, and the other pod tries again. */
  acknowledgedMs: 1_000,
  /** Messages that wait in the queue, whoever has sent them. */
  queuedMessages: 500_000,
  /** A longer queue is looked at by who has filled it. */
  fairFromMessages: 1_000,
  /** The same for a queue of few large messages. */
  fairFromBytes: 16 * 1024 * 1024,
  /** Of one source while the queue is that long; what comes then lets everybody else pass … */
  messagesApart: 1_000,
  /** The same in bytes: a few of the largest messages. */
  bytesApart: 16 * 1024 * 1024,
  /** … and beyond this it has to come later. */
  messagesOfSource: 100_000,
  /** Of `INBOUND_BYTES` for one source: four sources at least are needed to fill it. */
  bytesPercentOfSource: 25,
  /** Sources that are counted at a time. */
  sources: 100_000,
  lookEveryMs: 1_000,
  /** What a pod is asked to wait when it has sent too much, or everybody has. */
  retryAfterSeconds: 120,
  /** People of this pod whose guid is remembered, so that a private message asks no database; they do not move away. */
  recipients: 10_000,
  recipientAgeMs: 10 * 60_000,
  /** Guids that the database is asked for in one question. */
  recipientsPerQuestion: 128,
  /** A longer private body is not looked into before it is queued: eight megabytes of brackets would take a second. */
  examinedCharacters: 64 * 1024,
} as const

/**
 * Messages that wait for something unknown, and messages that were given up. An unproven message names a signer who is unknown
 * here: anybody can send any number of them, so each of their bounds is far below that of verified ones.
 */
export const WAITING_LIMITS = {
  /** Of verified messages, in all and of the pod of one signer. */
  messages: 500_000,
  bytes: 1024 * 1024 * 1024,
  messagesOfHost: 50_000,
  bytesOfHost: 128 * 1024 * 1024,
  /** Of unproven messages, in all and of the host that they name. */
  unprovenMessages: 20_000,
  unprovenBytes: 64 * 1024 * 1024,
  unprovenMessagesOfHost: 1_000,
  unprovenBytesOfHost: 4 * 1024 * 1024,
  /** Nearly all honest messages are smaller. */
  unprovenBytesOfMessage: 64 * 1024,
  /** A longer one is kept if it may be legal: the first post of an honest newcomer may be the longest text there is … */
  longestUnprovenBytes: 2 * 1024 * 1024,
  /** … and no more than these of all hosts together; the oldest is dropped for a new one. */
  longUnprovenBytes: 32 * 1024 * 1024,
  /** An unproven message waits so long if no pod has ever answered at its host: a little longer than the tries of its look-up. */
  unprovenPatienceSeconds: 20 * 60,
  /** Messages that were given up, and the bytes of those with a payload; unproven ones are kept without. */
  deadMessages: 100_000,
  deadBytes: 1024 * 1024 * 1024,
  /** How often the sums over all messages are looked at. */
  lookEveryMs: 10_000,
  /** Rows that one statement deletes. */
  rowsAtOnce: 1_000,
} as const

/** Looking up signers whom nobody here knows and no signature has proven. */
export const SIGNER_LIMITS = {
  /** New signers, on hosts that no pod has answered from, that one network address may name in a minute; a worker counts for itself. */
  unprovenOfSourcePerMinute: 600,
  /** Network addresses that are counted at a time. */
  sources: 20_000,
  /** Look-ups of one host at a time: one until it has answered. */
  atOnce: 4,
  /** A host that has never answered: a pod that takes longer for its first answer is not worth a slot. */
  strangeHostMs: 6_000,
  knownHostMs: 15_000,
  /** Tries of one look-up, and the waits between them in seconds. */
  triesAtStrangeHost: 3,
  triesAtKnownHost: 6,
  retrySeconds: [30, 300, 1_800, 7_200, 7_200],
  /** Until a host is asked again that has been asked too often within a minute. */
  busySeconds: 15,
  /** After this a host gives its slot back and comes again behind all others. */
  drainMs: 10_000,
} as const

/** What goes out to other pods, and how long one of them may keep us. Numbers that other pods see are those of the federation. */
export const DELIVERY_LIMITS = {
  /** Refusals of one delivery: about seventeen hours. */
  tries: 10,
  /** Whether somebody shares matters for longer than what they wrote: about thirteen days. */
  triesOfContact: 20,
  /** The longest wait of a pod grows no more after so many failures in a row: about six hours. */
  podFailures: 9,
  /** After so long offline a pod gets nothing new. */
  asleepAfterDays: 14,
  /** Rows of one pod that are read at a time; an envelope may have megabytes. */
  rowsAtOnce: 20,
  /** Relays and participations of one round, … */
  relaysInRound: 3,
  /** … and the longest pause after a round of relays, which is as long as the round: a flood takes half of the time. */
  relayPauseMs: 60,
  /** Deliveries to one pod under way, once a first one has gone well; the way out has the same limit. */
  atOnce: 4,
  /** Relays of one dispatch; each may have hundreds of deliveries. */
  relaysAtOnce: 32,
  /** Relays that wait for a pod that has never answered. */
  relaysUnanswered: 5,
  /** Subscriptions to one post from pods that have never answered. */
  participantsUnanswered: 100,
  /** After this a pod gives its slot back and comes again; a last exchange still ends within the deadline of the job. */
  drainMs: 12_000,
  /** From the first byte to the status. */
  exchangeMs: 30_000,
  /** Proven pods that may keep a first try waiting for all of that time; once there are more, those that took so long give way. */
  silentAtOnce: 16,
  patienceMs: 1_500,
  /** How long a pod is left alone whose worker is not heard of any more: longer than a drain with its last exchange. */
  leaseMs: 60_000,
  /** Deliveries in a row that end in a redirect, until we look where the pod has gone. */
  redirects: 3,
  /** Pods to look at in one turn, and how long after the last look; every turn is a minute. */
  checksAtOnce: 60,
  checkEveryHours: 24,
  /** For a pod that was heard of while it was offline. */
  recheckMinutes: 30,
} as const

export type DeliveryLimits = { readonly [Name in keyof typeof DELIVERY_LIMITS]: number }

/** Searching for people. */
export const SEARCH_LIMITS = {
  /** One letter finds everybody. */
  shortest: 2,
  /** Somebody waits to see whether a pod knows whom they search for; what it says later is there for their next search. */
  discoveryMs: 2_000,
  lookEveryMs: 100,
  /** Searches that wait so in one web process, and those of one person; all others find whom the pod knows already. */
  strangersAtOnce: 32,
  strangersOfUser: 3,
  /** Each is one more table for the planner, which takes seconds for a hundred of them. */
  filters: 10,
} as const

/** Pictures that people upload. How many bytes one may have is a setting. */
export const PHOTO_LIMITS = {
  /** Under way at a time in one web process, and by one person: clients send a few side by side, but not dozens. */
  uploadsAtOnce: 32,
  uploadsOfPerson: 4,
  /** Photos of one person; what they take is bounded by the setting PHOTO_QUOTA. */
  photosOfPerson: 20_000,
  /** Forms that are read before their token is known: of one web process, and of one network address. */
  uploadsBeforeToken: 8,
  uploadsBeforeTokenOfAddress: 2,
  /** In front of them, and not read before their turn: clients may send a whole album at once. */
  uploadsWaiting: 256,
  uploadsWaitingOfPerson: 24,
  /** How many times the largest picture is read to its end, only so that the client hears that it was too large. */
  timesRead: 4,
  /** From the last byte to the photo; then the client is asked to try again. */
  madeWithinMs: 25_000,
  /** How often to look whether it is made: soon at first, then more and more seldom. */
  firstLookMs: 20,
  lastLookMs: 250,
  /** Options of an upload are a few short texts. */
  formFields: 50,
  fieldBytes: 1024,
  fieldNameBytes: 100,
  /** Longer sides than a JPEG can have are those of no photo. */
  sidePixels: 65_535,
  /** As they count; see workers/handlers/make-picture.ts. Measured: a worker with the worst of these needs half a gigabyte. */
  pixels: 100_000_000,
  /** Larger ones are made one after the other. */
  pixelsSideBySide: 25_000_000,
  frames: 1_000,
  /** For each of the sizes. */
  sizeSeconds: 15,
  /** What has been taken in and is no photo by now never becomes one. */
  uploadAgeMs: 60 * 60_000,
  sweepEveryMs: 10 * 60_000,
} as const

/** Streams of events that clients keep open for hours. */
export const LIVE_LIMITS = {
  /** Of this process; the other connections are for requests. */
  listeners: 1_500,
  /** Phones, tablets, and what a client forgot to close. */
  listenersOfUser: 20,
  /** Proxies close what is silent for a minute, some for half of one. */
  heartbeatMs: 20_000,
  /** A token that is revoked ends its streams within this time, and is told of nothing from the moment it is. */
  tokensAgainMs: 30_000,
  /** Written and not taken by the client: then it has to take it first, and is told the rest from the database. */
  unsentBytes: 64 * 1024,
  /** Events between two looks at that: the largest post has a few hundred kilobytes. */
  writtenAtOnce: 10,
  drainMs: 30_000,
  /** Looked through for a client that comes back; who has missed more is better off with the lists. */
  missed: 5_000,
  /** Clients that come back together; each has a connection to the database meanwhile. */
  catchingUpAtOnce: 2,
  showingAtOnce: 3,
  /** When the database is away. */
  againAfterMs: 1_000,
  reportEveryMs: 60_000,
  /** Told to clients: how long to wait before they come back, at least, and how far to spread. */
  retryMs: 2_000,
  retrySpreadMs: 3_000,
} as const

export type LiveLimits = { readonly [Name in keyof typeof LIVE_LIMITS]: number }

/** Signing in, by people and by their clients. */
export const OIDC_LIMITS = {
  /** A form of a client or of a person is a few hundred bytes; a long list of redirect addresses fits. */
  bodyBytes: 16 * 1024,
  accessTokenSeconds: 86_400,
  codeSeconds: 600,
  idTokenSeconds: 1_800,
  /** Counted from the last use. */
  refreshTokenSeconds: 400 * 86_400,
  /** A refresh token that was used within this time is not written again. */
  refreshTokenUseSeconds: 86_400,
  /** To find the password, or to make an account first. */
  interactionSeconds: 3_600,
  /** Authorization requests that are being decided about, in all; the oldest without a sign-in go first. */
  interactions: 5_000,
  /** Authorization requests that one browser can answer side by side; the oldest is forgotten for a new one. */
  requestsOfBrowser: 8,
  /** New authorization requests of a web process between two looks at their number. */
  interactionsBetweenTrims: 50,
  /** Of `state`, and of `nonce`. */
  stateBytes: 1_024,
  sessionSeconds: 14 * 86_400,
  /** The times in which the settings count what one network address does. */
  signInsPerSeconds: 300,
  clientsPerSeconds: 3_600,
  tokensPerSeconds: 60,
  authorizationsPerSeconds: 300,
  /** Wrong passwords of one network address for one account; from then on each costs a wait that doubles. */
  wrongPasswords: 5,
  firstWaitSeconds: 5,
  longestWaitSeconds: 900,
  /** Of the document that says which redirect addresses belong together. */
  sectorDocumentBytes: 64 * 1024,
  /** Network addresses that are counted at a time, for each of these. */
  sources: 20_000,
} as const
