import type { FastifyInstance, FastifyRequest } from 'fastify'
import {
  findStateOfCasePicture,
  readPictureOfCase,
  requestPictureOfCase,
} from '../../../domain/moderation/case-pictures.js'
import { type CasePictureState, PICTURE_VARIANTS } from '../../../persistence/moderation/case-pictures.js'
import { pathId, pathText } from '../../forms/form-fields.js'
import { html, type Markup } from '../../pages/markup.js'
import { queryText } from '../../schemas/query-text.js'
import { RequestFault } from '../../server/request-faults.js'
import { addFormAction, pathWithParameters } from '../actions.js'
import { sendConsolePage } from '../console-page.js'
import { actionForm } from '../form-parts.js'

const PATH = '/admin/reports/:id/pictures/:guid'

/** Pictures of a reported post: on request, blurred at first, and as copies that a worker has made. */
export function addCasePictures(app: FastifyInstance): void {
  const route = { config: { power: 'moderation' }, schema: { hide: true } } as const

  app.get(PATH, route, async (request, reply) => {
    const picture = pictureIn(request)
    const state = await findStateOfCasePicture(request.services, request.console.actor, picture)
    const isClear = queryText(request, 'variant') === 'clear'
    return sendConsolePage(request, reply, {
      title: `Picture of case ${picture.caseId}${state === 'ready' ? (isClear ? '' : ', blurred') : ': not shown'}`,
      content: html`<section class="card">${pictureCard(request, state, isClear)}
<p><a href="/admin/reports/${picture.caseId}">Back to the case</a></p></section>`,
    })
  })

  addFormAction(app, {
    path: PATH,
    power: 'moderation',
    title: 'Show the picture',
    flash: 'picture_wanted',
    page: pathWithParameters(PATH),
    run: (request) => requestPictureOfCase(request.services, request.console.actor, pictureIn(request)),
  })

  app.get(`${PATH}/:variant`, route, async (request, reply) => {
    const variant = PICTURE_VARIANTS.find((each) => each === pathText(request, 'variant'))
    if (variant === undefined) throw new RequestFault(404, 'There is nothing here.')
    return reply
      .type('image/webp')
      .send(await readPictureOfCase(request.services, request.console.actor, pictureIn(request), variant))
  })
}

function pictureIn(request: FastifyRequest) {
  return { caseId: pathId(request), photoGuid: pathText(request, 'guid') }
}

function pictureCard(request: FastifyRequest, state: CasePictureState | undefined, isClear: boolean): Markup {
  const path = pathWithParameters(PATH)(request)
  const form = actionForm(request, path, html`<button>Show the picture, blurred</button>`)
  if (state === undefined)
    return html`<p>The picture is fetched on request. The audit log records the request.</p>${form}`
  if (state === 'failed') return html`<p>The picture could not be fetched or read.</p>${form}`
  if (state === 'wanted') return html`<p>A worker fetches the picture. <a href="${path}">Refresh</a></p>`
  if (isClear) return html`<p><img src="${path}/clear" alt="The reported picture"></p>`
  return html`<p><img src="${path}/blurred" alt="The reported picture, blurred"></p>
<p><a href="${path}?variant=clear">Show it clearly</a></p>`
}
