import type { Command } from 'commander'
import { notifyOfBirthdays } from '../../src/domain/notifications/birthdays.js'
import { User } from '../../src/persistence/models/user.js'
import { listNotificationsOfUser } from '../../src/persistence/notifications/list-notifications.js'
import { CommandError } from '../command-error.js'
import { readCount, readDay } from '../options.js'
import { type OutputOptions, print, printable, table } from '../output.js'
import { withPod } from '../with-pod.js'

interface ListOptions extends OutputOptions {
  readonly limit: number
  readonly unread?: boolean
}

export function notificationCommands(program: Command): void {
  const notify = program.command('notify').description('Notifications of local users.')

  notify
    .command('list <username>')
    .description('Lists the notifications of a user, newest first.')
    .option('--unread', 'only unread ones')
    .option('--limit <number>', 'at most this many', readCount, 100)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod notify list alice --unread')
    .action(list)

  notify
    .command('birthdays')
    .description("Creates today's birthday notifications now. The pod creates them automatically at midnight UTC.")
    .option('--day <day>', 'for this day instead of today', readDay)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod notify birthdays')
    .action(birthdays)
}

async function list(username: string, options: ListOptions): Promise<void> {
  const { unread = false, limit } = options
  const { items } = await withPod(async (services) => {
    const user = await User.byUsername(services.db, username)
    if (user === undefined) throw new CommandError(`There is no local account named ${username}.`)
    return listNotificationsOfUser(services.db, user.id, { onlyUnread: unread, limit })
  })
  const notifications = items.map(({ guid, type, read, createdAt, updatedAt, target, actors }) => ({
    guid,
    type,
    read,
    created_at: createdAt.toISOString(),
    updated_at: updatedAt.toISOString(),
    target: target === undefined ? null : { guid: target.guid, author: target.author.address },
    actors: actors.map(({ address }) => address),
  }))
  const lines = table([
    ['changed', 'read', 'type', 'by', 'about'],
    ...notifications.map(({ updated_at, read, type, actors, target }) => [
      updated_at,
      read ? 'yes' : 'no',
      type,
      actors.join(', '),
      target === null ? '' : `${target.guid} by ${target.author}`,
    ]),
  ])
  print(options, notifications, (notifications.length === 0 ? ['There are no notifications.'] : lines).map(printable))
}

async function birthdays(options: OutputOptions & { readonly day?: string }): Promise<void> {
  const notifications = await withPod((services) => notifyOfBirthdays(services, options.day))
  print(options, { notifications }, [`${notifications} new ${notifications === 1 ? 'notification' : 'notifications'}.`])
}
