import multipart from '@fastify/multipart'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { MODERATION_LIMITS } from '../../../domain/moderation/limits.js'
import {
  applyPodRuleImport,
  getPodRuleImport,
  planPodRuleImport,
  undoPodRuleImport,
} from '../../../domain/moderation/pods/pod-rule-imports.js'
import { Refusal } from '../../../domain/refusals.js'
import { presentPodRuleImport } from '../../presenters/pod-rules.js'
import { actionBody, actionRefusals } from '../../schemas/moderation/moderation.js'
import { OperationSchema, PodRuleImportSchema } from '../../schemas/moderation/pod-rule-imports.js'
import { refTo } from '../../schemas/references.js'
import { RequestFault } from '../../server/request-faults.js'
import { getRequestActor } from './actor-of.js'
import { sendOperation } from './operations.js'

const tags = ['Pods']
const params = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) })
const MODES = ['keep', 'stricter', 'replace'] as const

/** Lists of rules that an admin imports: a plan, then its application by an operation, and the undo of it. */
export const podRuleImportRoutes: FastifyPluginAsyncTypebox = async (app) => {
  await app.register(multipart, {
    limits: { fileSize: MODERATION_LIMITS.importBytes, files: 1, fields: 5 },
    throwFileSizeLimit: false,
  })

  app.post(
    '/pod_rules/imports',
    {
      schema: {
        operationId: 'planPodRuleImport',
        tags,
        summary: 'Plan an import of rules',
        description:
          'Reads a domain block list of Mastodon (CSV), or a plain list of domains, at most 20 000 rows and 5 MiB. No rule changes. `mode` says what happens to domains that have a rule: `keep` it (default), take the `stricter` one, or `replace` it.',
        consumes: ['multipart/form-data'],
        body: Type.Object({
          file: Type.Unsafe<unknown>({ type: 'string', format: 'binary', description: 'The list.' }),
          mode: Type.Optional(Type.Enum([...MODES], { default: 'keep' })),
        }),
        response: { 202: refTo(PodRuleImportSchema, 'The plan.') },
      },
      // The handler reads the form.
      validatorCompiler: () => () => true,
      config: {
        scopes: ['administration'],
        refusals: { role_needed: 403, file_missing: 422, csv_invalid: 422, too_many_rows: 422 },
      },
    },
    async (request, reply) => {
      const actor = await getRequestActor(request, 'administration')
      const plan = await planPodRuleImport(request.services, actor, await readImportForm(request))
      reply.code(202)
      return presentPodRuleImport(plan)
    },
  )

  app.get(
    '/pod_rules/imports/:id',
    {
      schema: {
        operationId: 'getPodRuleImport',
        tags,
        summary: 'Read an import of rules',
        description: 'With all rows.',
        params,
        response: { 200: refTo(PodRuleImportSchema, 'The import.') },
      },
      config: { scopes: ['administration'], refusals: { role_needed: 403, import_not_found: 404 } },
    },
    async (request) =>
      presentPodRuleImport(
        await getPodRuleImport(request.services, await getRequestActor(request, 'administration'), request.params.id),
      ),
  )

  const config = {
    scopes: ['administration'],
    refusals: {
      ...actionRefusals,
      import_not_found: 404,
      bad_transition: 409,
      confirmation_needed: 409,
      operation_running: 409,
    },
  } as const
  const confirm = Type.Optional(Type.String({ description: 'The number of rows.' }))
  const response = { 202: refTo(OperationSchema, 'The operation that does the work.') }

  app.post(
    '/pod_rules/imports/:id/apply',
    {
      schema: {
        operationId: 'applyPodRuleImport',
        tags,
        summary: 'Apply an import of rules',
        description: 'Works in the background; `Location` leads to its progress.',
        params,
        body: Type.Object({
          reason: actionBody.reason,
          confirm,
          ids: Type.Optional(
            Type.Array(params.properties.id, { description: 'Rows of the plan. Default: those that it has chosen.' }),
          ),
        }),
        response,
      },
      config,
    },
    async (request, reply) => {
      const actor = await getRequestActor(request, 'administration')
      return sendOperation(reply, await applyPodRuleImport(request.services, actor, request.params.id, request.body))
    },
  )

  app.post(
    '/pod_rules/imports/:id/undo',
    {
      schema: {
        operationId: 'undoPodRuleImport',
        tags,
        summary: 'Undo an import of rules',
        description: 'Rules that were changed or deleted since the import are kept.',
        params,
        body: Type.Object({ reason: actionBody.reason, confirm }),
        response,
      },
      config,
    },
    async (request, reply) => {
      const actor = await getRequestActor(request, 'administration')
      return sendOperation(reply, await undoPodRuleImport(request.services, actor, request.params.id, request.body))
    },
  )
}

async function readImportForm(request: FastifyRequest): Promise<{ csv: string; mode: (typeof MODES)[number] }> {
  let csv: string | undefined
  let mode = 'keep'
  if (request.isMultipart()) {
    for await (const part of request.parts()) {
      if (part.type === 'field') {
        if (part.fieldname === 'mode') mode = String(part.value)
        continue
      }
      const bytes = await part.toBuffer()
      if (part.file.truncated) throw new Refusal('too_many_rows', 'The list is larger than 5 MiB.')
      if (part.fieldname === 'file') csv = bytes.toString('utf8')
    }
  }
  if (csv === undefined) throw new Refusal('file_missing', 'The list has to come as field "file" of a form.')
  const importMode = MODES.find((name) => name === mode)
  if (importMode === undefined)
    throw new RequestFault(422, 'The mode must be keep, stricter or replace.', { field: 'mode' })
  return { csv, mode: importMode }
}
