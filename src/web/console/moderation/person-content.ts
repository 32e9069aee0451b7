import type { FastifyInstance, FastifyRequest } from 'fastify'
import { hasPower, type Power } from '../../../domain/accounts/role-powers.js'
import type { Actor } from '../../../domain/moderation/actor.js'
import {
  hideContentOfPerson,
  type PersonContentOptions,
  removeContentOfPerson,
} from '../../../domain/moderation/people/content-of-person.js'
import type { PersonDetails } from '../../../domain/moderation/people/people.js'
import { deletePurgedPerson, purgePerson } from '../../../domain/moderation/people/purge-person.js'
import type { ModerationServices } from '../../../services/services.js'
import { pathText } from '../../forms/form-fields.js'
import { formText } from '../../forms/form-text.js'
import { html, type Markup } from '../../pages/markup.js'
import { addFormAction, pathWithParameters, ShowPage } from '../actions.js'
import type { FLASH_MESSAGES } from '../flash-messages.js'
import { actionForm, reasonField } from '../form-parts.js'
import { addressOfPerson, currentPerson, userNameIn } from './person-actions.js'

interface ContentAction {
  readonly title: string
  readonly text: string
  readonly power: Power
  readonly flash: keyof typeof FLASH_MESSAGES
  /** Whether the form is shown; the use case decides whether the action is possible. */
  isOffered(person: PersonDetails): boolean
  run(services: ModerationServices, actor: Actor, guid: string, options: PersonContentOptions): Promise<unknown>
}

/** Actions on everything that a person has written, by the end of their address. */
const CONTENT_ACTIONS: Readonly<Record<string, ContentAction>> = {
  hide_content: {
    title: 'Hide all public content',
    text: 'Hides the public posts and comments in the background, with one undo.',
    power: 'moderation',
    flash: 'work_started',
    isOffered: () => true,
    run: hideContentOfPerson,
  },
  remove_content: {
    title: 'Remove all public content',
    text: 'Removes the public posts and comments in the background. What a local person may retract is retracted, which is final.',
    power: 'moderation',
    flash: 'work_started',
    isOffered: () => true,
    run: removeContentOfPerson,
  },
  purge: {
    title: 'Delete all content',
    text: 'Ends all contacts, and deletes everything by the blocked person in the background. Final.',
    power: 'administration',
    flash: 'work_started',
    isOffered: ({ state, isLocal }) => !isLocal && state === 'blocked',
    run: purgePerson,
  },
  forget: {
    title: 'Forget the person',
    text: 'Deletes the record of a person of whom nothing is stored. A message or a search makes them known again.',
    power: 'administration',
    flash: 'person_forgotten',
    isOffered: ({ isLocal }) => !isLocal,
    run: deletePurgedPerson,
  },
}

/** The forms for the content of a person. */
export function contentForms(request: FastifyRequest, person: PersonDetails, version: string): Markup {
  const { role } = request.console.staff
  const offered = Object.entries(CONTENT_ACTIONS).filter(
    ([, { power, isOffered }]) => hasPower(role, power) && isOffered(person),
  )
  return html`<section class="card choices">${offered.map(([name, { title, text }]) => {
    const button = html`<button class="${name === 'hide_content' ? 'quiet' : 'danger'}">${title}${name !== 'hide_content' && '…'}</button>`
    const path = `/admin/people/${encodeURIComponent(person.guid)}/${name}`
    return html`<div><h2>${title}</h2><p>${text}</p>${actionForm(request, path, html`${reasonField()}${button}`, { version })}</div>\n`
  })}</section>`
}

export function addContentActions(app: FastifyInstance): void {
  const guidIn = (request: FastifyRequest) => pathText(request, 'guid')
  for (const [name, { title, power, flash, run }] of Object.entries(CONTENT_ACTIONS)) {
    addFormAction(app, {
      path: `/admin/people/:guid/${name}`,
      power,
      title,
      flash,
      page: pathWithParameters('/admin/people/:guid'),
      current: (request) => currentPerson(request, guidIn(request)),
      label: async (request) => userNameIfLocal(request, await addressOfPerson(request, guidIn(request))),
      async run(request, confirm) {
        await run(request.services, request.console.actor, guidIn(request), {
          reason: formText(request, 'reason'),
          confirm,
        })
        return name === 'forget' ? new ShowPage('/admin/people') : undefined
      },
    })
  }
}

/** The text that confirms: the address, of a local person the user name. */
function userNameIfLocal({ services }: FastifyRequest, address: string): string {
  return address.endsWith(`@${services.config.host}`) ? userNameIn(address) : address
}
