import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { hasPower } from '../../../domain/accounts/role-powers.js'
import { undoAction } from '../../../domain/moderation/actions.js'
import type { ContentTarget } from '../../../domain/moderation/find-content.js'
import { hideContent } from '../../../domain/moderation/hide-content.js'
import { readRecordedContent } from '../../../domain/moderation/read-content.js'
import { runInOneTransaction } from '../../../domain/moderation/record-action.js'
import { purgeContent, removeContent } from '../../../domain/moderation/remove-content.js'
import { pathId, pathText } from '../../forms/form-fields.js'
import { formText } from '../../forms/form-text.js'
import { html, type Markup } from '../../pages/markup.js'
import { queryText } from '../../schemas/query-text.js'
import { addFormAction, type FormAction, pathWithParameters, ShowPage } from '../actions.js'
import { sendConsolePage } from '../console-page.js'
import { actionForm, hiddenField, reasonField, untilField } from '../form-parts.js'
import { formatTime } from '../quantities.js'
import { detailList, stateBadge } from '../tables.js'
import { actionList } from './action-list.js'
import { caseOrPagePath, readActionOptions, resolveCaseIfTicked } from './case-form.js'
import { currentCaseOr } from './case-state.js'
import { evidenceBlock } from './evidence.js'
import { applyChosenAuthorAction, authorConfirmation, currentPerson, listActionsOn } from './person-actions.js'

type Found = Awaited<ReturnType<typeof readRecordedContent>>

/** `/admin/content/:guid`: a post or a comment as it is stored, hidden or not. */
export const contentRoutes: FastifyPluginAsync = async (app) => {
  app.get(
    '/admin/content/:guid',
    { config: { power: 'moderation' }, schema: { hide: true } },
    async (request, reply) => {
      const target = targetIn(request, queryText(request, 'type'))
      const content = await readRecordedContent(request.services, request.console.actor, target)
      const { items } = await listActionsOn(request, target.guid)
      return sendConsolePage(request, reply, {
        title: `${target.type === 'post' ? 'Post' : 'Comment'}: ${content.isHidden ? 'hidden' : 'visible'}`,
        content: html`<section class="card">${factsOf(target, content)}${evidenceBlock(content.text)}</section>
<section class="card"><h2>Actions</h2>${actionList(request, items)}</section>
${forms(request, target, String(items[0]?.id ?? 0))}`,
      })
    },
  )

  const page = caseOrPagePath((request) => {
    const type = formText(request, 'type')
    return `${pathWithParameters('/admin/content/:guid')(request)}${type === 'comment' ? '?type=comment' : ''}`
  })
  const add = (name: string, action: Pick<FormAction, 'power' | 'title' | 'flash' | 'run'>) =>
    addFormAction(app, {
      ...action,
      path: `/admin/content/:guid/${name}`,
      page,
      current: (request) => currentCaseOr(request, () => currentPerson(request, pathText(request, 'guid'))),
      label: async (request) => (await authorConfirmation(request)) ?? pathText(request, 'guid'),
    })

  /** The content, its author and its case change with one form. */
  const runWithAuthorAndCase =
    (change: typeof hideContent | typeof removeContent): FormAction['run'] =>
    (request, confirm) =>
      runInOneTransaction(request.services, [
        (joined) => applyChosenAuthorAction(joined, request, confirm),
        (joined) => change(joined, request.console.actor, targetOfForm(request), readActionOptions(request)),
        (joined) => resolveCaseIfTicked(joined, request),
      ])

  add('hide', {
    power: 'moderation',
    title: 'Hide the content',
    flash: 'hidden',
    run: runWithAuthorAndCase(hideContent),
  })
  add('remove', {
    power: 'moderation',
    title: 'Remove the content',
    flash: 'removed',
    run: runWithAuthorAndCase(removeContent),
  })
  add('purge', {
    power: 'administration',
    title: 'Delete the content permanently',
    flash: 'purged',
    async run(request, confirm) {
      await purgeContent(request.services, request.console.actor, targetOfForm(request), {
        ...readActionOptions(request),
        confirm,
      })
      return new ShowPage('/admin/reports')
    },
  })

  addFormAction(app, {
    path: '/admin/actions/:id/undo',
    power: 'moderation',
    title: 'Undo the action',
    flash: 'undone',
    page: caseOrPagePath(() => '/admin/audit'),
    run: (request) => undoAction(request.services, request.console.actor, pathId(request), readActionOptions(request)),
  })
}

function targetOfForm(request: FastifyRequest): ContentTarget {
  return targetIn(request, formText(request, 'type'))
}

function targetIn(request: FastifyRequest, type: string | undefined): ContentTarget {
  return { type: type === 'comment' ? 'comment' : 'post', guid: pathText(request, 'guid') }
}

function factsOf({ type, guid }: ContentTarget, { author, caseId, postGuid, ...found }: Found): Markup {
  const isVisible = found.public && !found.isHidden
  const anchor = type === 'comment' ? `#${encodeURIComponent(guid)}` : ''
  return detailList([
    ['State', found.isHidden ? stateBadge('hidden', 'warn') : stateBadge('visible', 'good')],
    [
      'Author',
      html`<bdi>${author.name}</bdi> <a href="/admin/people/${encodeURIComponent(author.guid)}"><bdi>${author.address}</bdi></a>`,
    ],
    ['Visible to', found.public ? 'everyone' : 'chosen people only'],
    ['Written', formatTime(found.createdAt)],
    ['Guid', html`<bdi>${guid}</bdi>`],
    ...(isVisible
      ? [['Link', html`<a href="/posts/${encodeURIComponent(postGuid)}${anchor}">The public page</a>`] as const]
      : []),
    ...(caseId === undefined ? [] : [['Case', html`<a href="/admin/reports/${caseId}">${caseId}</a>`] as const]),
  ])
}

function forms(request: FastifyRequest, { type, guid }: ContentTarget, version: string): Markup {
  const form = (action: string, fields: Markup) =>
    actionForm(
      request,
      `/admin/content/${encodeURIComponent(guid)}/${action}`,
      html`${hiddenField('type', type)}${fields}`,
      {
        version,
      },
    )
  return html`<section class="card choices">
<div><h2>Hide</h2><p>Only its author and moderators see it. Nothing is sent to other pods.</p>${form('hide', html`${reasonField()}${untilField()}<button class="quiet">Hide the ${type}</button>`)}</div>
<div><h2>Remove</h2><p>Content of local authors, and comments on their posts, are retracted on other pods; that cannot be undone. Other content is hidden until an undo.</p>${form('remove', html`${reasonField()}<button class="danger">Remove the ${type}</button>`)}</div>
${
  hasPower(request.console.staff.role, 'administration') &&
  html`<div><h2>Delete permanently</h2><p>Only content of other pods.</p>${form('purge', html`${reasonField()}<button class="danger">Delete the ${type}…</button>`)}</div>`
}</section>`
}
