import multipart from '@fastify/multipart'
import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { MODERATION_LIMITS } from '../../../../domain/moderation/limits.js'
import {
  applyPodRuleImport,
  listLatestImports,
  planPodRuleImport,
  readImportPart,
  undoPodRuleImport,
} from '../../../../domain/moderation/pods/pod-rule-imports.js'
import { Refusal } from '../../../../domain/refusals.js'
import { IMPORT_VERDICTS } from '../../../../persistence/moderation/pod-rule-imports.js'
import { formChoice, formTexts, pathId } from '../../../forms/form-fields.js'
import { formText } from '../../../forms/form-text.js'
import { html } from '../../../pages/markup.js'
import { queryText } from '../../../schemas/query-text.js'
import { addFormAction, pathWithParameters, ShowPage } from '../../actions.js'
import { sendConsolePage } from '../../console-page.js'
import { formatTime } from '../../quantities.js'
import { listCard } from '../../tables.js'
import { IMPORT_MODES, importForm, planPage, ROWS_SHOWN } from './pod-rule-import-page.js'

const { importBytes } = MODERATION_LIMITS

/** `/admin/rules/import`: lists of rules: a plan, its application and its undo. */
export const podRuleImportRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'administration' } as const
  const schema = { hide: true }
  // One byte more shows that a list is too long.
  await app.register(multipart, {
    limits: { fileSize: importBytes + 1, files: 1, fields: 10 },
    throwFileSizeLimit: false,
  })
  app.addHook('onRoute', (route) => {
    route.bodyLimit = 3 * importBytes
  })
  app.addHook('preValidation', readListForm)

  app.get('/admin/rules/import', { config, schema }, async (request, reply) => {
    const imports = await listLatestImports(request.services, request.console.actor)
    const table = {
      caption: 'The latest imports',
      columns: [{ title: 'Import' }, { title: 'State' }, { title: 'Mode' }, { title: 'By' }, { title: 'Made' }],
      rows: imports.map(({ id, state, mode, createdBy, createdAt }) => [
        html`<a href="/admin/rules/import/${id}">${id}</a>`,
        state,
        mode,
        html`<bdi>${createdBy}</bdi>`,
        formatTime(createdAt),
      ]),
    }
    return sendConsolePage(request, reply, {
      title: 'Import rules for pods',
      content: html`<section class="card"><h2>A new import</h2>${importForm(request)}</section>
<section class="card">${listCard(table, { empty: 'There was no import.' })}</section>`,
    })
  })

  app.get('/admin/rules/import/:id', { config, schema }, async (request, reply) => {
    const after = Number(queryText(request, 'after') ?? 0)
    const verdict = IMPORT_VERDICTS.find((each) => each === queryText(request, 'verdict'))
    const part = { verdict, after: Number.isSafeInteger(after) ? after : 0, limit: ROWS_SHOWN + 1 }
    const podRuleImport = await readImportPart(request.services, request.console.actor, pathId(request), part)
    return sendConsolePage(request, reply, planPage(request, podRuleImport, verdict))
  })

  addFormAction(app, {
    path: '/admin/rules/import',
    power: 'administration',
    title: 'Plan the import',
    flash: 'import_planned',
    page: '/admin/rules/import',
    async run(request) {
      const csv = formText(request, 'file')
      if (csv === undefined) throw new Refusal('file_missing', 'Choose a file with a list.')
      const mode = formChoice(request, 'mode', IMPORT_MODES) ?? 'keep'
      const { plan } = await planPodRuleImport(request.services, request.console.actor, { csv, mode })
      return new ShowPage(`/admin/rules/import/${plan.id}`)
    },
  })
  const step = {
    power: 'administration',
    page: pathWithParameters('/admin/rules/import/:id'),
    label: (_request: FastifyRequest, { rows }: Readonly<Record<string, unknown>>) => String(rows),
  } as const
  addFormAction(app, {
    ...step,
    path: '/admin/rules/import/:id/apply',
    title: 'Apply the import',
    flash: 'import_applied',
    run: (request, confirm) => {
      const ids = formChoice(request, 'rows', ['plan', 'ticked']) === 'ticked' ? tickedIn(request) : undefined
      const options = { ids, confirm, reason: formText(request, 'reason') }
      return applyPodRuleImport(request.services, request.console.actor, pathId(request), options)
    },
  })
  addFormAction(app, {
    ...step,
    path: '/admin/rules/import/:id/undo',
    title: 'Undo the import',
    flash: 'import_undone',
    run: (request, confirm) =>
      undoPodRuleImport(request.services, request.console.actor, pathId(request), {
        confirm,
        reason: formText(request, 'reason'),
      }),
  })
}

function tickedIn(request: FastifyRequest): readonly number[] {
  return formTexts(request, 'ids').map(Number).filter(Number.isSafeInteger)
}

/** Reads a form with a file. The text of the file is a field like the others. */
async function readListForm(request: FastifyRequest): Promise<void> {
  if (!request.isMultipart()) return
  const body: Record<string, string> = {}
  for await (const part of request.parts()) {
    body[part.fieldname] = part.type === 'file' ? (await part.toBuffer()).toString('utf8') : String(part.value)
  }
  request.body = body
}
