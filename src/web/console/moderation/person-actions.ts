import type { FastifyInstance, FastifyRequest } from 'fastify'
import { listModerationActions } from '../../../domain/moderation/actions.js'
import type { Actor } from '../../../domain/moderation/actor.js'
import { endSessionsAsModerator } from '../../../domain/moderation/end-sessions.js'
import { clearProfile } from '../../../domain/moderation/people/clear-profile.js'
import { closePerson } from '../../../domain/moderation/people/close-person.js'
import { addPersonNote } from '../../../domain/moderation/people/note-person.js'
import { getPersonDetails, muteReports } from '../../../domain/moderation/people/people.js'
import { warnPerson } from '../../../domain/moderation/people/warn-person.js'
import { runInOneTransaction } from '../../../domain/moderation/record-action.js'
import { blockOnPod, type RestrictOptions, silencePerson } from '../../../domain/moderation/restrict-person.js'
import { suspendAccount } from '../../../domain/moderation/restrict-user.js'
import { splitAddress } from '../../../protocol/address.js'
import type { ModerationServices } from '../../../services/services.js'
import { formChoice, isTicked, pathText } from '../../forms/form-fields.js'
import { formText } from '../../forms/form-text.js'
import { html } from '../../pages/markup.js'
import { addFormAction, type CurrentState, type FormAction, pathWithParameters } from '../actions.js'
import { actionList } from './action-list.js'
import { caseOrPagePath, readActionOptions, resolveCaseIfTicked } from './case-form.js'
import { currentCaseOr } from './case-state.js'

export interface PersonAction {
  readonly title: string
  readonly text: string
  readonly flash: 'silenced' | 'person_blocked' | 'locked' | 'sessions_ended' | 'profile_cleared'
  /** The people who can be meant. */
  readonly whose: 'local' | 'remote' | 'both'
  readonly canEnd: boolean
  run(services: ModerationServices, actor: Actor, guid: string, options: RestrictOptions): Promise<unknown>
}

/** Actions by the end of their address; the mildest first. */
export const PERSON_ACTIONS = {
  silence: {
    title: 'Silence',
    text: 'Only followers see the posts in streams and searches. Threads, messages and deliveries stay.',
    flash: 'silenced',
    whose: 'both',
    canEnd: true,
    run: silencePerson,
  },
  end_sessions: {
    title: 'End all sessions',
    text: 'Ends sessions, tokens and live streams. The person can sign in again.',
    flash: 'sessions_ended',
    whose: 'local',
    canEnd: false,
    run: endSessionsAsModerator,
  },
  clear_profile: {
    title: 'Clear the profile',
    text: 'Removes the picture and all texts of the profile, here and on other pods. Final.',
    flash: 'profile_cleared',
    whose: 'local',
    canEnd: false,
    run: clearProfile,
  },
  lock: {
    title: 'Lock the account',
    text: 'No sign-in, tokens are refused, posts stay.',
    flash: 'locked',
    whose: 'local',
    canEnd: true,
    run: suspendAccount,
  },
  block: {
    title: 'Block',
    text: 'Hides everything by the person, drops new messages from them, and makes their contacts inactive.',
    flash: 'person_blocked',
    whose: 'remote',
    canEnd: true,
    run: blockOnPod,
  },
} as const satisfies Readonly<Record<string, PersonAction>>

const AUTHOR_ACTIONS = ['warn', 'silence', 'clear_profile', 'lock', 'close', 'block'] as const
type AuthorAction = (typeof AUTHOR_ACTIONS)[number]

/** The actions that the page of a case offers for the author; the mildest first. */
export function authorChoices(isLocal: boolean): readonly (readonly [AuthorAction, string])[] {
  return isLocal
    ? [
        ['warn', 'Warn the author'],
        ['silence', 'Silence the author'],
        ['clear_profile', 'Clear the profile'],
        ['lock', 'Lock the account'],
        ['close', 'Close the account…'],
      ]
    : [
        ['silence', 'Silence the author'],
        ['block', 'Block the author…'],
      ]
}

/** Acts on the author of content if this is chosen in the form of the content. */
export async function applyChosenAuthorAction(
  services: ModerationServices,
  request: FastifyRequest,
  confirm: string | undefined,
): Promise<void> {
  const name = formChoice(request, 'author', AUTHOR_ACTIONS)
  const guid = formText(request, 'author_guid')
  if (name === undefined || guid === undefined) return
  await AUTHOR_ACTION_RUNS[name](services, request, guid, confirm)
}

/** The text that confirms the chosen action on the author; undefined: it needs none. */
export async function authorConfirmation(request: FastifyRequest): Promise<string | undefined> {
  const name = formChoice(request, 'author', ['block', 'close'] as const)
  if (name === undefined) return undefined
  const address = await addressOfPerson(request, formText(request, 'author_guid') ?? '')
  return name === 'close' ? userNameIn(address) : address
}

type RunPersonAction = (
  services: ModerationServices,
  request: FastifyRequest,
  guid: string,
  confirm: string | undefined,
) => Promise<unknown>

const warn: RunPersonAction = (services, request, guid) =>
  warnPerson(services, request.console.actor, guid, {
    ...readActionOptions(request),
    text: formText(request, 'text') ?? '',
  })

const close: RunPersonAction = (services, request, guid, confirm) =>
  closePerson(services, request.console.actor, guid, {
    ...readActionOptions(request),
    immediately: isTicked(request, 'immediately'),
    retractContent: isTicked(request, 'retract_content'),
    confirm,
  })

function runOf({ run }: PersonAction): RunPersonAction {
  return (services, request, guid, confirm) =>
    run(services, request.console.actor, guid, { ...readActionOptions(request), confirm })
}

const AUTHOR_ACTION_RUNS: Readonly<Record<AuthorAction, RunPersonAction>> = {
  warn,
  close,
  silence: runOf(PERSON_ACTIONS.silence),
  clear_profile: runOf(PERSON_ACTIONS.clear_profile),
  lock: runOf(PERSON_ACTIONS.lock),
  block: runOf(PERSON_ACTIONS.block),
}

/** The address, which is typed to confirm a block. */
export async function addressOfPerson({ services, console: access }: FastifyRequest, guid: string): Promise<string> {
  return (await getPersonDetails(services, access.actor, guid)).address
}

/** The user name of a local address, which is typed to confirm changes of the account. */
export function userNameIn(address: string): string {
  return splitAddress(address)?.name ?? address
}

/** The forms of a person. */
export function addPersonActions(app: FastifyInstance): void {
  const page = pathWithParameters('/admin/people/:guid')
  const guidIn = (request: FastifyRequest) => pathText(request, 'guid')

  const addressIn = (request: FastifyRequest) => addressOfPerson(request, guidIn(request))
  const add = (name: string, action: Pick<FormAction, 'title' | 'flash' | 'label'>, run: RunPersonAction) =>
    addFormAction(app, {
      ...action,
      path: `/admin/people/:guid/${name}`,
      power: 'moderation',
      page: caseOrPagePath(page),
      current: (request) => currentCaseOr(request, () => currentPerson(request, guidIn(request))),
      /** The person and the case change with one form. */
      run: (request, confirm) =>
        runInOneTransaction(request.services, [
          (joined) => run(joined, request, guidIn(request), confirm),
          (joined) => resolveCaseIfTicked(joined, request),
        ]),
    })

  for (const [name, action] of Object.entries<PersonAction>(PERSON_ACTIONS)) {
    add(name, { title: action.title, flash: action.flash, label: addressIn }, runOf(action))
  }
  add('warn', { title: 'Warn', flash: 'warned' }, warn)
  const userNameLabel = async (request: FastifyRequest) => userNameIn(await addressIn(request))
  add('close', { title: 'Close the account', flash: 'account_closing', label: userNameLabel }, close)
  addFormAction(app, {
    path: '/admin/people/:guid/notes',
    power: 'moderation',
    title: 'Add a note',
    flash: 'person_noted',
    page,
    run: (request) =>
      addPersonNote(request.services, request.console.actor, guidIn(request), {
        text: formText(request, 'text') ?? '',
      }),
  })
  addFormAction(app, {
    path: '/admin/people/:guid/mute_reports',
    power: 'moderation',
    title: 'Mute the reports',
    flash: 'reports_muted',
    page,
    run: (request) =>
      muteReports(request.services, request.console.actor, guidIn(request), {
        muted: formText(request, 'reports_muted') === 'true',
        reason: formText(request, 'reason'),
      }),
  })
}

const LATEST_ACTIONS = 20

export function listActionsOn({ services, console: access }: FastifyRequest, guid: string) {
  return listModerationActions(services, access.actor, { target: guid }, { limit: LATEST_ACTIONS })
}

/** The actions on a person or on content, for a form that was made from an earlier state. */
export async function currentPerson(request: FastifyRequest, guid: string): Promise<CurrentState> {
  const { items } = await listActionsOn(request, guid)
  return { version: String(items[0]?.id ?? 0), state: html`${actionList(request, items)}` }
}
