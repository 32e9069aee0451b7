import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { SMTPServer } from 'smtp-server'

/** A mail as the server received it. */
interface ReceivedMail {
  readonly from: string
  readonly to: readonly string[]
  /** Headers by lower-case name, unfolded and decoded. */
  readonly headers: Readonly<Record<string, string>>
  /** The raw message. */
  readonly source: string
  /** The decoded text part. */
  readonly text: string
  readonly html: string
}

interface Refusal {
  readonly code: number
  readonly message: string
}

export interface TestSmtpServer extends AsyncDisposable {
  readonly url: string
  readonly mails: ReceivedMail[]
  /** Refuses each next command of a kind; undefined: accepts it. */
  refuse(step: 'auth' | 'sender' | 'recipient', refusal: Refusal | undefined): void
  /** Runs once, before the server accepts the next mail. */
  whileReceiving(run: () => Promise<unknown>): void
  /** Whether credentials arrived. */
  readonly sawCredentials: boolean
  close(): Promise<void>
}

/** A mail server on loopback that keeps what it receives. It offers no TLS. */
export async function startSmtpServer({ auth = false } = {}): Promise<TestSmtpServer> {
  const mails: ReceivedMail[] = []
  const refusals = new Map<string, Refusal>()
  let sawCredentials = false
  let meanwhile: (() => Promise<unknown>) | undefined
  const respond = (step: string, callback: (error?: Error | null) => void) => {
    const refusal = refusals.get(step)
    callback(refusal && Object.assign(new Error(refusal.message), { responseCode: refusal.code }))
  }
  const server = new SMTPServer({
    disabledCommands: ['STARTTLS', ...(auth ? [] : ['AUTH'])],
    authOptional: !auth,
    allowInsecureAuth: true,
    hideENHANCEDSTATUSCODES: true,
    disableReverseLookup: true,
    logger: false,
    onAuth(_auth, _session, callback) {
      sawCredentials = true
      const refusal = refusals.get('auth')
      if (refusal) callback(Object.assign(new Error(refusal.message), { responseCode: refusal.code }))
      else callback(null, { user: 'pod' })
    },
    onMailFrom: (_address, _session, callback) => respond('sender', callback),
    onRcptTo: (_address, _session, callback) => respond('recipient', callback),
    onData(stream, session, callback) {
      void text(stream).then(async (source) => {
        const run = meanwhile
        meanwhile = undefined
        await run?.()
        const { mailFrom, rcptTo } = session.envelope
        mails.push({
          ...readMessage(source),
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
        })
        callback()
      })
    },
  })
  server.on('error', () => {})
  server.listen(0, '127.0.0.1')
  await once(server.server, 'listening')
  const { port } = server.server.address() as AddressInfo
  const close = () => new Promise<void>((resolve) => server.close(() => resolve()))
  return {
    url: `smtp://${auth ? 'pod:secret@' : ''}127.0.0.1:${port}`,
    mails,
    refuse(step, refusal) {
      if (refusal === undefined) refusals.delete(step)
      else refusals.set(step, refusal)
    },
    whileReceiving(run) {
      meanwhile = run
    },
    get sawCredentials() {
      return sawCredentials
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** Reads what nodemailer writes: a multipart message with a text and an HTML part. */
function readMessage(source: string): Pick<ReceivedMail, 'headers' | 'source' | 'text' | 'html'> {
  const { headers, body } = splitHead(source)
  const [, boundary = ''] = /boundary="([^"]+)"/.exec(headers['content-type'] ?? '') ?? []
  const parts = body.split(`--${boundary}`).map((part) => splitHead(part.trimStart()))
  const partOf = (type: string) => {
    const part = parts.find((each) => each.headers['content-type']?.startsWith(type))
    return part === undefined ? '' : decodeBody(part.body, part.headers['content-transfer-encoding'])
  }
  return { headers, source, text: partOf('text/plain'), html: partOf('text/html') }
}

function splitHead(message: string) {
  const end = message.indexOf('\r\n\r\n')
  const lines = message
    .slice(0, end)
    .replace(/\r\n[ \t]+/g, ' ')
    .split('\r\n')
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), decodeWords(line.slice(colon + 1).trim())]
    }),
  )
  return { headers, body: message.slice(end + 4) }
}

function decodeWords(value: string): string {
  return value.replace(/=\?UTF-8\?([BQ])\?([^?]*)\?=\s?/gi, (_, kind: string, encoded: string) =>
    kind.toUpperCase() === 'B'
      ? Buffer.from(encoded, 'base64').toString()
      : decodeBody(encoded.replaceAll('_', ' '), 'quoted-printable'),
  )
}

function decodeBody(body: string, encoding = '7bit'): string {
  if (encoding === 'base64') return Buffer.from(body, 'base64').toString()
  if (encoding !== 'quoted-printable') return body
  const bytes = body
    .replace(/=\r?\n/g, '')
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  return Buffer.from(bytes, 'latin1').toString()
}
