import { lookup } from 'node:dns/promises'
import { TLSSocket } from 'node:tls'
import SMTPConnection from 'nodemailer/lib/smtp-connection'
import type { MailSettings } from '../../../config/mail-settings.js'
import { messageOf } from '../../../errors/thrown.js'
import { type MailMessage, sendMessage } from './send-message.js'
import { readSmtpFault } from './smtp-faults.js'
import { readSmtpUrl, smtpOptions } from './smtp-options.js'

export interface MailCheckStep {
  readonly step: 'name' | 'connection' | 'certificate' | 'auth' | 'sending'
  readonly ok: boolean
  readonly ms: number
  readonly answer: string
  /** Advice for the operator; null: none. */
  readonly advice: string | null
}

const ADVICE: Readonly<Record<string, string>> = {
  tls: 'The server offers no TLS that can be trusted. Use smtps://, or another port; for a server in a trusted network add ?ignoreTLS=true.',
  auth: 'Check user and password in SMTP_URL; special characters need percent-encoding.',
  policy: 'The server refuses this pod. Check MAIL_FROM, and SPF and DKIM of its domain.',
  sender: 'The server refuses MAIL_FROM. It must be an address that this user of the server may use.',
  no_mailbox: 'The server knows no such mailbox. Try another address.',
  refused: 'The server refuses this mail. Its answer says why.',
}

/** Tries each step of sending a mail and stops at the first failure. Without a mail, it stops before sending. */
export async function checkMailServer(
  settings: MailSettings,
  message: MailMessage | undefined,
  host: string,
): Promise<readonly MailCheckStep[]> {
  const steps: MailCheckStep[] = []
  const { host: server, port, auth } = readSmtpUrl(settings.url)

  async function run(step: MailCheckStep['step'], work: () => Promise<string>): Promise<boolean> {
    const begin = performance.now()
    const add = (hasSucceeded: boolean, answer: string, advice: string | null) =>
      steps.push({ step, ok: hasSucceeded, ms: Math.round(performance.now() - begin), answer, advice })
    try {
      add(true, await work(), null)
      return true
    } catch (error) {
      const advice = step === 'name' ? 'Check the name in SMTP_URL.' : ADVICE[readSmtpFault(error).fault]
      add(false, messageOf(error), advice ?? `Check that a mail server answers at ${server}:${port}.`)
      return false
    }
  }

  const connection = new SMTPConnection(smtpOptions(settings, host))
  try {
    const isReached =
      (await run('name', async () => (await lookup(server)).address)) &&
      (await run('connection', () => connect(connection))) &&
      (await run('certificate', async () => describeTls(connection))) &&
      (auth === undefined || (await run('auth', () => logIn(connection, auth))))
    if (isReached && message !== undefined) {
      await run('sending', async () => {
        await sendMessage(settings, host, message)
        return 'The server accepted the mail.'
      })
    }
  } finally {
    connection.close()
  }
  return steps
}

function connect(connection: SMTPConnection): Promise<string> {
  return new Promise((resolve, reject) => {
    connection.on('error', reject)
    connection.connect((error) => (error ? reject(error) : resolve(connection.secure ? 'With TLS.' : 'Without TLS.')))
  })
}

function describeTls({ _socket: socket }: SMTPConnection): string {
  if (!(socket instanceof TLSSocket)) return 'No TLS: SMTP_URL allows that.'
  const { subject, valid_to: until } = socket.getPeerCertificate()
  const name = subject?.CN ?? 'a certificate without a name'
  return `${socket.getProtocol()}, ${String(name)}, valid until ${until}.`
}

function logIn(connection: SMTPConnection, { user, pass }: { readonly user: string; readonly pass: string }) {
  return new Promise<string>((resolve, reject) => {
    connection.login({ credentials: { user, pass } }, (error) =>
      error ? reject(error) : resolve('The server accepted user and password.'),
    )
  })
}
