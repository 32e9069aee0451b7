import { type Command, Option } from 'commander'
import { undoActionsOnTarget } from '../../../src/domain/moderation/actions.js'
import type { Actor } from '../../../src/domain/moderation/actor.js'
import { endSessionsAsModerator } from '../../../src/domain/moderation/end-sessions.js'
import { deleteRemotePerson, getRemotePerson } from '../../../src/domain/moderation/forget-person.js'
import { clearProfile } from '../../../src/domain/moderation/people/clear-profile.js'
import { closePerson } from '../../../src/domain/moderation/people/close-person.js'
import { hideContentOfPerson, removeContentOfPerson } from '../../../src/domain/moderation/people/content-of-person.js'
import { addPersonNote } from '../../../src/domain/moderation/people/note-person.js'
import { getPersonGuid, listPeople, readPerson } from '../../../src/domain/moderation/people/people.js'
import { purgePerson } from '../../../src/domain/moderation/people/purge-person.js'
import { warnPerson } from '../../../src/domain/moderation/people/warn-person.js'
import type { ActionOptions } from '../../../src/domain/moderation/record-action.js'
import { blockOnPod, previewBlock, silencePerson } from '../../../src/domain/moderation/restrict-person.js'
import { suspendAccount } from '../../../src/domain/moderation/restrict-user.js'
import type { PersonState } from '../../../src/persistence/moderation/people-records.js'
import type { Services } from '../../../src/services/services.js'
import { presentPersonDetails, presentPersonRecord } from '../../../src/web/presenters/moderation.js'
import { type ActorOptions, getActor, withActorOptions, withConfirmation } from '../../actor-options.js'
import { CommandError } from '../../command-error.js'
import { readCount } from '../../options.js'
import { countText, print, printable, table } from '../../output.js'
import { readAddress } from '../../read-named.js'
import { waitForQueue } from '../../wait-for-queue.js'
import { withPod } from '../../with-pod.js'

const PEOPLE_SHOWN = 50
const STATES = ['open', 'silenced', 'blocked', 'locked', 'closing', 'closed'] as const

interface ListOptions extends ActorOptions {
  readonly q?: string
  readonly state?: PersonState
  readonly limit: number
}

interface PersonOptions extends ActorOptions {
  readonly until?: Date
  readonly yes?: boolean
  readonly dryRun?: boolean
  readonly immediately?: boolean
  readonly retractContent?: boolean
  readonly text?: string
  /** The number of a case. */
  readonly case?: number
}

interface PersonRequest {
  readonly guid: string
  readonly address: string
  readonly options: PersonOptions
}

type Run = (services: Services, actor: Actor, request: PersonRequest) => Promise<{ readonly changed: boolean }>

/** The people that moderators take actions on: local ones by user name, others by address. */
export function moderatedPeopleCommands(program: Command): void {
  const people = program.command('people').description('Local and remote people, and actions of moderators on them.')

  withActorOptions(people.command('list'))
    .description('Lists people, newest first.')
    .option('--q <text>', 'part of the name, or the beginning of the address')
    .addOption(new Option('--state <state>', 'only people in this state').choices([...STATES]))
    .option('--limit <number>', 'at most this many', readCount, PEOPLE_SHOWN)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod people list --state blocked')
    .action(list)

  command('show', 'Shows a person with all restrictions.').action(show)

  const silence: Run = (services, actor, { guid, options }) =>
    silencePerson(services, actor, guid, { ...actionOf(options), until: options.until })
  actionCommand('silence', 'Shows the posts of a person to their followers only.')
    .option('--until <time>', 'the end, like 2026-12-24T18:00Z', readEnd)
    .action(createActionHandler(silence, 'silenced'))

  const block: Run = (services, actor, { guid, address, options }) => {
    const confirm = options.yes ? address : undefined
    return blockOnPod(services, actor, guid, { ...actionOf(options), until: options.until, confirm })
  }
  actionCommand('block', 'Hides all content of a remote person and ignores new messages from them.')
    .option('--until <time>', 'the end, like 2026-12-24T18:00Z', readEnd)
    .option('--dry-run', 'only print what the block would change')
    .option('--yes', 'confirm, for a person with contacts on this pod')
    .action((name: string, options: PersonOptions) =>
      options.dryRun ? showPreview(name, options) : createActionHandler(block, 'blocked')(name, options),
    )

  const lock: Run = (services, actor, { guid, options }) =>
    suspendAccount(services, actor, guid, { ...actionOf(options), until: options.until })
  actionCommand('lock', 'Locks a local account: no sign-in, tokens are refused, posts stay.')
    .option('--until <time>', 'the end, like 2026-12-24T18:00Z', readEnd)
    .action(createActionHandler(lock, 'locked'))

  addMessageCommands(command, actionCommand)

  const close: Run = (services, actor, { guid, address, options }) =>
    closePerson(services, actor, guid, {
      ...actionOf(options),
      immediately: options.immediately,
      retractContent: options.retractContent,
      confirm: options.yes ? labelOf(services, address) : undefined,
    })
  actionCommand('close', 'Closes a local account after CLOSE_GRACE_DAYS; its owner cannot prevent it.')
    .option('--immediately', 'without grace period and undo; for admins')
    .option('--retract-content', 'retract all comments and posts first')
    .option('--dry-run', 'only print what the account has')
    .option('--yes', 'confirm')
    .action((name: string, options: PersonOptions) =>
      options.dryRun ? showPreview(name, options) : createRequestHandler(close, 'Closing', 'requested')(name, options),
    )

  addContentCommands(actionCommand)

  const end: Run = (services, actor, { guid, options }) =>
    endSessionsAsModerator(services, actor, guid, actionOf(options))
  actionCommand('end-sessions', 'Ends sessions, tokens and live streams of a local account.').action(
    createActionHandler(end, 'signed out'),
  )

  const undo: Run = (services, actor, { guid, options }) =>
    undoActionsOnTarget(
      services,
      actor,
      { type: 'person', guid, kinds: ['silence', 'block', 'lock', 'close', 'hide_content', 'remove_content'] },
      actionOf(options),
    )
  actionCommand('undo', 'Undoes silence, block, lock and closing of a person, and shows hidden content.').action(
    createActionHandler(undo, 'released'),
  )

  addForgetCommand(people)

  function actionCommand(name: string, description: string): Command {
    return command(name, description).option('--case <id>', 'the number of the case that this is about', readCount)
  }

  function command(name: string, description: string): Command {
    return withActorOptions(people.command(name))
      .argument('<person>', 'the username of a local person, or an address')
      .description(description)
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  pod people ${name} alice@pod.example --reason "Spam"`)
  }
}

type AddCommand = (name: string, description: string) => Command

/** Commands for warnings, profile texts and notes. */
function addMessageCommands(command: AddCommand, actionCommand: AddCommand): void {
  const warn: Run = (services, actor, { guid, options }) =>
    warnPerson(services, actor, guid, { ...actionOf(options), text: options.text ?? '' })
  actionCommand('warn', 'Warns a local person, who sees the text after the next sign-in.')
    .requiredOption('--text <text>', 'the text for the person')
    .action(createActionHandler(warn, 'warned'))

  const clear: Run = (services, actor, { guid, options }) => clearProfile(services, actor, guid, actionOf(options))
  actionCommand('clear-profile', 'Removes the picture and all texts of a local profile.').action(
    createActionHandler(clear, 'cleared'),
  )

  const note: Run = (services, actor, { guid, options: { text = '' } }) =>
    addPersonNote(services, actor, guid, { text })
  command('note', 'Adds a note about a person for other moderators.')
    .requiredOption('--text <text>', 'the note')
    .action(createActionHandler(note, 'noted'))
}

function addForgetCommand(people: Command): void {
  withActorOptions(people.command('forget'))
    .argument('<address>', 'the address of a person of another pod', readAddress)
    .description(
      'Deletes a person of another pod with their key, guid, posts, comments, likes, votes, messages, conversations they began, and contacts. The next message or search discovers the person again, with the current key of their pod.',
    )
    .option('--dry-run', 'only print what would be deleted')
    .option('--yes', 'confirm')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod people forget alice@pod.example --reason "A wrong guid" --yes')
    .action(forget)
}

/** Commands for all content of a person. */
function addContentCommands(command: AddCommand): void {
  const hide: Run = (services, actor, { guid, options }) =>
    hideContentOfPerson(services, actor, guid, actionOf(options))
  command('hide-content', 'Hides the public posts and comments of a person, in the background.').action(
    createRequestHandler(hide, 'Hiding of posts and comments'),
  )

  const remove: Run = (services, actor, { guid, address, options }) => {
    const confirm = options.yes ? labelOf(services, address) : undefined
    return removeContentOfPerson(services, actor, guid, { ...actionOf(options), confirm })
  }
  withConfirmation(
    command('remove-content', 'Removes the public posts and comments of a person, in the background.'),
  ).action(createRequestHandler(remove, 'Removal of posts and comments'))

  const purge: Run = (services, actor, { guid, address, options }) =>
    purgePerson(services, actor, guid, { ...actionOf(options), confirm: options.yes ? address : undefined })
  withConfirmation(command('purge', 'Deletes the content of a blocked remote person, in the background.')).action(
    createRequestHandler(purge, 'Purge'),
  )
}

/** What the options say about the action itself. */
function actionOf({ reason, case: caseId }: PersonOptions): Pick<ActionOptions, 'reason' | 'caseId'> {
  return { reason, caseId }
}

/** The label of a local person is the user name. */
function labelOf({ config }: Services, address: string): string {
  return address.replace(`@${config.host}`, '')
}

function readEnd(text: string): Date {
  const time = new Date(text)
  if (Number.isNaN(time.getTime())) throw new CommandError(`${text} is not a time such as 2026-12-24T18:00Z.`)
  return time
}

async function list({ q: text, state, limit, ...options }: ListOptions): Promise<void> {
  const people = await withPod(async (services) => {
    const { items } = await listPeople(
      services,
      await getActor(services, options, 'moderation'),
      { text, state },
      { limit },
    )
    return items.map((record) => presentPersonRecord(record, services.config))
  })
  const rows = people.map((person) => [person.network_id, person.state, person.role, person.first_seen_at])
  print(options, people, [
    ...table([['address', 'state', 'role', 'first seen'], ...rows]).map(printable),
    people.length === 1 ? '1 person' : `${people.length} people`,
  ])
}

async function show(name: string, options: PersonOptions): Promise<void> {
  const person = await withPod(async (services) => {
    const actor = await getActor(services, options, 'moderation')
    return presentPersonDetails(
      await readPerson(services, actor, (await getPersonGuid(services, name)).guid),
      services.config,
    )
  })
  const details = [
    ['address', person.network_id],
    ['state', person.state],
    ['first seen', person.first_seen_at],
    ...person.restrictions.map(({ kind, by, action_id: id, until }) => [
      kind,
      `by ${by}${id === null ? '' : `, action ${id}`}${until === null ? '' : `, until ${until}`}`,
    ]),
    ...Object.entries(person.counts).map(([kind, count]) => [kind, countText(count)]),
  ]
  print(options, person, table(details).map(printable))
}

async function showPreview(name: string, options: PersonOptions): Promise<void> {
  const preview = await withPod(async (services) => {
    const actor = await getActor(services, options, 'moderation')
    return previewBlock(services, actor, (await getPersonGuid(services, name)).guid)
  })
  print(
    options,
    preview,
    table(Object.entries(preview).map(([kind, count]) => [kind, countText(count)])).map(printable),
  )
}

/** Creates the handler of an action that is complete when the command ends. */
function createActionHandler(run: Run, done: string) {
  return createHandler(run, (name, changed) => `${name} was ${done}${changed ? '' : ' before: nothing has changed'}.`)
}

/** Creates the handler of an action that continues after the command. */
function createRequestHandler(run: Run, action: string, state = 'queued') {
  return createHandler(run, (name, changed) =>
    changed ? `${action} of ${name} ${state}.` : `${action} of ${name} was ${state} before: nothing has changed.`,
  )
}

function createHandler(run: Run, describe: (name: string, changed: boolean) => string) {
  return async (name: string, options: PersonOptions): Promise<void> => {
    const { changed } = await withPod(async (services) => {
      await waitForQueue(services.jobs)
      const person = await getPersonGuid(services, name)
      return run(services, await getActor(services, options, 'moderation'), { ...person, options })
    })
    print(options, { person: name, changed }, [describe(name, changed)])
  }
}

async function forget(address: string, options: PersonOptions): Promise<void> {
  const person = await withPod(async (services) => {
    const remotePerson = await getRemotePerson(services, address)
    if (options.dryRun || !options.yes) return remotePerson
    await deleteRemotePerson(services, await getActor(services, options, 'administration'), remotePerson, {
      reason: options.reason,
    })
    return remotePerson
  })
  const { guid, rows } = person
  const counts = Object.entries(rows)
    .map(([kind, count]) => `${kind} ${count}`)
    .join(', ')
  if (options.dryRun)
    return print(options, rows, table(Object.entries(rows).map(([kind, count]) => [kind, `${count}`])))
  if (!options.yes) {
    throw new CommandError(`This would delete ${address} (${counts}), and cannot be undone: add --yes to do it.`)
  }
  print(options, { address, guid, deleted: rows }, [`${address} was deleted, with ${counts}.`])
}
