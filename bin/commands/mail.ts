import type { Command } from 'commander'
import { recordBounce } from '../../src/domain/mail/bounces.js'
import { MAIL_LIMITS } from '../../src/domain/mail/limits.js'
import { findMailStatus, resumeMail, testMail } from '../../src/domain/mail/mail-operations.js'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { CommandError } from '../command-error.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { withPod } from '../with-pod.js'

export function mailCommands(program: Command): void {
  const mail = program.command('mail').description('Mails of the pod.')

  mail
    .command('test <address>')
    .description('Sends a test mail and shows each step with its time and the answer of the mail server.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod mail test alice@mail.example')
    .action(test)

  mail
    .command('status')
    .description('Shows whether the mail server accepts mails, and the number of waiting mails.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod mail status')
    .action(status)

  mail
    .command('bounce')
    .description('Reads one delivery status notification from standard input, piped by the mail server.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod mail bounce < notification.eml')
    .action(bounce)

  mail
    .command('resume')
    .description('Retries the next mail now, after the mail server has rejected this pod.')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod mail resume')
    .action(resume)
}

async function test(address: string, options: OutputOptions): Promise<void> {
  const steps = await withPod((services) => testMail(services, address))
  const failure = steps.find(({ ok }) => !ok)
  const rows = steps.map(({ step, ok, ms, answer }) => [step, ok ? 'ok' : 'failed', `${ms} ms`, answer])
  print(options, { ok: failure === undefined, steps }, table(rows).map(printable))
  if (failure !== undefined) throw new CommandError(failure.advice ?? 'The mail was not sent.')
}

async function status(options: OutputOptions): Promise<void> {
  const mailStatus = await withPod(findMailStatus)
  const fields = {
    configured: mailStatus.configured,
    failing_since: mailStatus.failingSince?.toISOString() ?? null,
    fault: mailStatus.fault,
    code: mailStatus.code,
    next_probe: mailStatus.nextProbe?.toISOString() ?? null,
    waiting: mailStatus.waiting,
    dead: mailStatus.dead,
    sent_24h: mailStatus.sentToday,
    users_bouncing: mailStatus.usersBouncing,
    users_suppressed: mailStatus.usersSuppressed,
  }
  print(options, fields, table(Object.entries(fields).map(([name, value]) => [name, String(value ?? 'none')])))
}

async function bounce(options: OutputOptions): Promise<void> {
  const message = await readStandardInput()
  const { username, state, ignored } = await withPod((services) => recordBounce(services, message))
  print(options, { username, state, ignored }, [
    username === null ? `Nothing was changed: ${ignored}.` : `The mailbox of ${username} is ${state}.`,
  ])
}

async function readStandardInput(): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin.setEncoding('latin1')) {
    text += chunk
    if (text.length > MAIL_LIMITS.bounceBytes) throw new CommandError('The message is too large.')
  }
  return text
}

async function resume(options: OutputOptions): Promise<void> {
  await withPod((services) => resumeMail(services, COMMAND_ACTOR))
  print(options, { resumed: true }, ['The next mail tries now.'])
}
