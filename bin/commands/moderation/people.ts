import { type Command, Option } from 'commander'
import { undoActionsOnTarget } from '../../../src/domain/moderation/actions.js'
import type { Actor } from '../../../src/domain/moderation/actor.js'
import { endSessionsAsModerator } from '../../../src/domain/moderation/end-sessions.js'
import { deleteRemotePerson, findRemotePerson } from '../../../src/domain/moderation/forget-person.js'
import { clearProfile } from '../../../src/domain/moderation/people/clear-profile.js'
import { closePerson } from '../../../src/domain/moderation/people/close-person.js'
import { hideContentOfPerson, removeContentOfPerson } from '../../../src/domain/moderation/people/content-of-person.js'
import { addPersonNote } from '../../../src/domain/moderation/people/note-person.js'
import { purgePerson } from '../../../src/domain/moderation/people/purge-person.js'
import { warnPerson } from '../../../src/domain/moderation/people/warn-person.js'
import { findPersonGuid, listPeople, readPerson } from '../../../src/domain/moderation/people.js'
import { blockOnPod, previewBlock, silencePerson } from '../../../src/domain/moderation/restrict-person.js'
import { suspendAccount } from '../../../src/domain/moderation/restrict-user.js'
import type { PersonState } from '../../../src/persistence/moderation/people-records.js'
import type { Pod } from '../../../src/pod/pod.js'
import { presentPersonRecord, presentWholePersonRecord } from '../../../src/web/presenters/moderation.js'
import { type ActorOptions, findActor, withActorOptions } from '../../actor-options.js'
import { CommandError } from '../../command-error.js'
import { readCount } from '../../options.js'
import { countText, print, printable, table } from '../../output.js'
import { queueAnswers } from '../../queue-answers.js'
import { readAddress } from '../../read-named.js'
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
}

interface PersonRequest {
  readonly guid: string
  readonly address: string
  readonly options: PersonOptions
}

type Run = (pod: Pod, actor: Actor, request: PersonRequest) => Promise<{ readonly changed: boolean }>

/** The people that moderators take actions on: local ones by user name, others by address. */
export function moderatedPeopleCommands(program: Command): void {
  const people = program.command('people').description('Local and remote people, and actions of moderators on them.')

  withActorOptions(people.command('list'))
    .description('Lists people, the latest first.')
    .option('--q <text>', 'part of the name, or the beginning of the address')
    .addOption(new Option('--state <state>', 'only those').choices([...STATES]))
    .option('--limit <number>', 'at most this many', readCount, PEOPLE_SHOWN)
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod people list --state blocked')
    .action(list)

  command('show', 'Shows a person with everything that restricts them.').action(show)

  const silence: Run = (pod, actor, { guid, options: { reason, until } }) =>
    silencePerson(pod, actor, guid, { reason, until })
  command('silence', 'Shows the posts of a person to their followers only.')
    .option('--until <time>', 'the end, as 2026-12-24T18:00Z', readEnd)
    .action(act(silence, 'silenced'))

  const block: Run = (pod, actor, { guid, address, options: { reason, until, yes } }) =>
    blockOnPod(pod, actor, guid, { reason, until, confirm: yes ? address : undefined })
  command('block', 'Hides everything by a remote person and drops new messages from them.')
    .option('--until <time>', 'the end, as 2026-12-24T18:00Z', readEnd)
    .option('--dry-run', 'only print what the block would change')
    .option('--yes', 'confirm, for a person with contacts on this pod')
    .action((name: string, options: PersonOptions) =>
      options.dryRun ? showPreview(name, options) : act(block, 'blocked')(name, options),
    )

  const lock: Run = (pod, actor, { guid, options: { reason, until } }) =>
    suspendAccount(pod, actor, guid, { reason, until })
  command('lock', 'Locks a local account: no sign-in, tokens are refused, posts stay.')
    .option('--until <time>', 'the end, as 2026-12-24T18:00Z', readEnd)
    .action(act(lock, 'locked'))

  const warn: Run = (pod, actor, { guid, options: { reason, text = '' } }) =>
    warnPerson(pod, actor, guid, { reason, text })
  command('warn', 'Warns a local person, who sees the text after the next sign-in.')
    .requiredOption('--text <text>', 'what the person reads')
    .action(act(warn, 'warned'))

  const clear: Run = (pod, actor, { guid, options: { reason } }) => clearProfile(pod, actor, guid, { reason })
  command('clear-profile', 'Removes the picture and all texts of a local profile.').action(act(clear, 'cleared'))

  const note: Run = (pod, actor, { guid, options: { text = '' } }) => addPersonNote(pod, actor, guid, { text })
  command('note', 'Adds a note about a person for other moderators.')
    .requiredOption('--text <text>', 'the note')
    .action(act(note, 'noted'))

  const close: Run = (pod, actor, { guid, address, options: { reason, yes, immediately, retractContent } }) =>
    closePerson(pod, actor, guid, {
      reason,
      immediately,
      retractContent,
      confirm: yes ? labelOf(pod, address) : undefined,
    })
  command('close', 'Closes a local account after CLOSE_GRACE_DAYS; its owner cannot prevent it.')
    .option('--immediately', 'without grace period and undo; for admins')
    .option('--retract-content', 'retract all comments and posts first')
    .option('--dry-run', 'only print what the account has')
    .option('--yes', 'confirm')
    .action((name: string, options: PersonOptions) =>
      options.dryRun ? showPreview(name, options) : act(close, 'closed, or will be')(name, options),
    )

  addContentCommands(command)

  const end: Run = (pod, actor, { guid, options: { reason } }) => endSessionsAsModerator(pod, actor, guid, { reason })
  command('end-sessions', 'Ends sessions, tokens and live streams of a local account.').action(act(end, 'signed out'))

  const undo: Run = (pod, actor, { guid, options: { reason } }) =>
    undoActionsOnTarget(
      pod,
      actor,
      { type: 'person', guid, kinds: ['silence', 'block', 'lock', 'close', 'hide_content', 'remove_content'] },
      { reason },
    )
  command('undo', 'Undoes silence, block, lock and closing of a person, and shows hidden content.').action(
    act(undo, 'released'),
  )

  withActorOptions(people.command('forget'))
    .argument('<address>', 'the address of a person of another pod', readAddress)
    .description(
      'Deletes a person of another pod with their key, guid, posts, comments, likes, votes, messages, the conversations they began, and their place among contacts. The next message or search makes them known again, with the key that their pod has then.',
    )
    .option('--yes', 'confirm; without it, only prints what would be deleted')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  pod people forget alice@pod.example --reason "A wrong guid" --yes')
    .action(forget)

  function command(name: string, description: string): Command {
    return withActorOptions(people.command(name))
      .argument('<person>', 'the user name of a local person, or an address')
      .description(description)
      .option('--json', 'print JSON')
      .addHelpText('after', `\nExample:\n  pod people ${name} alice@pod.example --reason "Spam"`)
  }
}

/** What happens to everything that a person has written. */
function addContentCommands(command: (name: string, description: string) => Command): void {
  const hide: Run = (pod, actor, { guid, options: { reason } }) => hideContentOfPerson(pod, actor, guid, { reason })
  command('hide-content', 'Hides the public posts and comments of a person, in the background.').action(
    act(hide, 'hidden with posts and comments, or will be'),
  )

  const remove: Run = (pod, actor, { guid, address, options: { reason, yes } }) =>
    removeContentOfPerson(pod, actor, guid, { reason, confirm: yes ? labelOf(pod, address) : undefined })
  command('remove-content', 'Removes the public posts and comments of a person, in the background.')
    .option('--yes', 'confirm')
    .action(act(remove, 'cleared of posts and comments, or will be'))

  const purge: Run = (pod, actor, { guid, address, options: { reason, yes } }) =>
    purgePerson(pod, actor, guid, { reason, confirm: yes ? address : undefined })
  command('purge', 'Deletes the content of a blocked remote person, in the background.')
    .option('--yes', 'confirm')
    .action(act(purge, 'purged, or will be'))
}

/** The label of a local person is the user name. */
function labelOf({ config }: Pod, address: string): string {
  return address.replace(`@${config.host}`, '')
}

function readEnd(text: string): Date {
  const time = new Date(text)
  if (Number.isNaN(time.getTime())) throw new CommandError(`${text} is not a time such as 2026-12-24T18:00Z.`)
  return time
}

async function list({ q: text, state, limit, ...options }: ListOptions): Promise<void> {
  const people = await withPod(async (pod) => {
    const { items } = await listPeople(pod, await findActor(pod, options, 'moderation'), { text, state }, { limit })
    return items.map((record) => presentPersonRecord(record, pod.config))
  })
  const rows = people.map((person) => [person.network_id, person.state, person.role, person.first_seen_at])
  print(options, people, [
    ...table([['address', 'state', 'role', 'first seen'], ...rows]).map(printable),
    people.length === 1 ? '1 person' : `${people.length} people`,
  ])
}

async function show(name: string, options: PersonOptions): Promise<void> {
  const person = await withPod(async (pod) => {
    const actor = await findActor(pod, options, 'moderation')
    return presentWholePersonRecord(await readPerson(pod, actor, (await findPersonGuid(pod, name)).guid), pod.config)
  })
  const facts = [
    ['address', person.network_id],
    ['state', person.state],
    ['first seen', person.first_seen_at],
    ...person.restrictions.map(({ kind, by, action_id: id, until }) => [
      kind,
      `by ${by}${id === null ? '' : `, action ${id}`}${until === null ? '' : `, until ${until}`}`,
    ]),
    ...Object.entries(person.counts).map(([kind, count]) => [kind, countText(count)]),
  ]
  print(options, person, table(facts).map(printable))
}

async function showPreview(name: string, options: PersonOptions): Promise<void> {
  const preview = await withPod(async (pod) => {
    const actor = await findActor(pod, options, 'moderation')
    return previewBlock(pod, actor, (await findPersonGuid(pod, name)).guid)
  })
  print(
    options,
    preview,
    table(Object.entries(preview).map(([kind, count]) => [kind, countText(count)])).map(printable),
  )
}

function act(run: Run, done: string) {
  return async (name: string, options: PersonOptions): Promise<void> => {
    const { changed } = await withPod(async (pod) => {
      await queueAnswers(pod.jobs)
      const person = await findPersonGuid(pod, name)
      return run(pod, await findActor(pod, options, 'moderation'), { ...person, options })
    })
    print(options, { person: name, changed }, [`${name} was ${done}${changed ? '' : ' before: nothing has changed'}.`])
  }
}

async function forget(address: string, options: PersonOptions): Promise<void> {
  const person = await withPod(async (pod) => {
    const remotePerson = await findRemotePerson(pod, address)
    if (!options.yes) return remotePerson
    await deleteRemotePerson(pod, await findActor(pod, options, 'administration'), remotePerson, {
      reason: options.reason,
    })
    return remotePerson
  })
  const { guid, rows } = person
  const counts = Object.entries(rows)
    .map(([kind, count]) => `${kind} ${count}`)
    .join(', ')
  if (!options.yes) {
    throw new CommandError(`This would delete ${address} (${counts}), and cannot be undone: add --yes to do it.`)
  }
  print(options, { address, guid, deleted: rows }, [`${address} was deleted, with ${counts}.`])
}
