import { Readable } from 'node:stream'
import multipart from '@fastify/multipart'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Knex } from 'knex'
import { reauthenticate } from '../../../domain/accounts/factors/reauthenticate.js'
import { getArchiveImport, shareAgain } from '../../../domain/archives/imports.js'
import type { Actor } from '../../../domain/moderation/actor.js'
import { csvLine } from '../../../domain/moderation/csv.js'
import { cancelImport, setImportState } from '../../../federation/archives/imports/stop-import.js'
import { dropUpload, requestCheck } from '../../../federation/archives/uploads/receive-upload.js'
import { startImport } from '../../../federation/archives/uploads/start-import.js'
import { type ItemOutcome, listItemOutcomes } from '../../../persistence/archives/imports.js'
import { User } from '../../../persistence/models/user.js'
import { formText } from '../../forms/form-text.js'
import { OIDC_PATHS } from '../../oidc/paths.js'
import { openWrongPasswords } from '../../oidc/wrong-passwords.js'
import { queryText } from '../../schemas/query-text.js'
import { collectFieldErrors, type FieldErrors } from '../field-errors.js'
import { sendSettingsPage } from '../settings-page.js'
import { importPage } from './import-page.js'
import { importingUserOf, isRecentlyAuthenticated } from './importing-user.js'
import { IMPORT_PATHS } from './paths.js'
import { RETRY_AFTER_SECONDS, readUploadedFiles, uploadPartRoutes } from './upload-routes.js'

const UPLOAD_REFUSALS = {
  isolated_copy: undefined,
  imports_off: undefined,
  upload_running: undefined,
  upload_missing: 'archive',
  import_running: undefined,
  too_many_checks: undefined,
  too_large: 'archive',
  no_space: undefined,
  uploads_full: undefined,
}

const START_REFUSALS = {
  isolated_copy: undefined,
  imports_off: undefined,
  check_needed: undefined,
  import_running: undefined,
  content_needs_move: 'content',
  old_address_missing: 'old_address',
  old_address_wrong: 'old_address',
  old_account_unproven: 'old_password',
  key_mismatch: undefined,
  moved_elsewhere: undefined,
  same_account: undefined,
}

const STOP_REFUSALS = {
  isolated_copy: undefined,
  import_not_found: undefined,
  import_over: undefined,
  import_beyond_cancel: undefined,
}

/** Refusals that say: later. */
const LATER: ReadonlySet<string> = new Set(['import_running', 'upload_running', 'too_many_checks'])

/** Imports of archives into the own account: upload, check, choices, progress, result. */
export const importPageRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  await app.register(multipart, { throwFileSizeLimit: false })
  await app.register(uploadPartRoutes)
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const
  const withProof = { ...route, config: { requires: 'proof' } } as const
  const wrongPasswords = openWrongPasswords(() => services.now())

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { t } = request.signedIn
    return sendSettingsPage(request, reply, {
      title: t('settings.import'),
      content: await importPage(request, errors),
      errors,
      hasScript: true,
      mayConnect: true,
    })
  }

  /** Runs a use case. Shows the page with its refusal, or redirects to the page with a flash message. */
  async function runUseCase(
    reply: FastifyReply,
    flash: string,
    refusals: Parameters<typeof collectFieldErrors>[1],
    useCase: () => Promise<unknown>,
  ) {
    const { request } = reply
    const errors = await collectFieldErrors(request.signedIn.t, refusals, useCase, (reason) => {
      if (LATER.has(reason)) reply.code(429)
      else if (reason === 'too_large') reply.code(413)
      else if (reason === 'no_space') reply.code(507)
      else if (reason === 'uploads_full') reply.code(503).header('retry-after', RETRY_AFTER_SECONDS)
    })
    if (errors.length > 0) return show(request, reply, errors)
    return reply.redirect(`${IMPORT_PATHS.page}?flash=${flash}`, 303)
  }

  app.get(IMPORT_PATHS.page, route, async (request, reply) => show(request, reply))

  // The token is in the query, so that the files are read only if it is right.
  app.post(IMPORT_PATHS.upload, { ...route, config: { ...route.config, checksForm: true } }, async (request, reply) => {
    request.signedIn.session.checkForm(queryText(request, 'form'))
    if (!isRecentlyAuthenticated(request)) {
      const back = encodeURIComponent(IMPORT_PATHS.page)
      return reply.header('connection', 'close').redirect(`${OIDC_PATHS.confirmAccess}?return_to=${back}`, 303)
    }
    return runUseCase(reply, 'import_uploaded', UPLOAD_REFUSALS, () => readUploadedFiles(request, reply))
  })

  app.post(IMPORT_PATHS.check, route, async (request, reply) =>
    runUseCase(reply, 'import_uploaded', UPLOAD_REFUSALS, () =>
      requestCheck(request.services, importingUserOf(request)),
    ),
  )

  app.post(IMPORT_PATHS.drop, route, async (request, reply) =>
    runUseCase(reply, 'import_dropped', UPLOAD_REFUSALS, () => dropUpload(request.services, importingUserOf(request))),
  )

  app.post(IMPORT_PATHS.start, withProof, async (request, reply) =>
    runUseCase(reply, 'import_started', START_REFUSALS, async () => {
      const user = importingUserOf(request)
      const isChosen = (name: string) => formText(request, name) !== undefined
      const choices = {
        contacts: isChosen('contacts'),
        content: isChosen('content'),
        settings: isChosen('settings'),
        profile: isChosen('profile'),
        move: isChosen('move'),
        oldAddress: formText(request, 'old_address') ?? '',
      }
      await startImport(request.services, actorOf(request), user, {
        choices,
        proveOldAccount: (username) => proveOldAccount(request, username),
      })
    }),
  )

  /** The owner of an old account on this pod types its password, and the code of its second factor. */
  async function proveOldAccount(request: FastifyRequest, username: string): Promise<boolean> {
    const old = await User.byUsername(services.db, username)
    const wait = wrongPasswords.waitFor(request.ip, username)
    if (wait !== undefined) throw wait
    const password = formText(request, 'old_password')
    if (old === undefined || password === undefined) return false
    const answer = { password, code: formText(request, 'old_code') ?? '' }
    wrongPasswords.count(request.ip, username) // before the check: requests at the same time are attempts, too
    const outcome = await reauthenticate(request.services, old.id, answer)
    if (outcome !== 'password_right' && outcome !== 'code_right') return false
    wrongPasswords.forget(request.ip, username)
    return true
  }

  for (const [path, state, flash] of [
    [IMPORT_PATHS.pause, 'paused', 'import_paused'],
    [IMPORT_PATHS.resume, 'running', 'import_resumed'],
  ] as const) {
    app.post(path, route, async (request, reply) => {
      const by = { userId: request.signedIn.viewer.userId, uid: formText(request, 'id') ?? '' }
      return runUseCase(reply, flash, STOP_REFUSALS, () => setImportState(request.services, by, state))
    })
  }

  app.post(IMPORT_PATHS.cancel, route, async (request, reply) =>
    runUseCase(reply, 'import_cancelled', STOP_REFUSALS, () =>
      cancelImport(request.services, importingUserOf(request), formText(request, 'id') ?? ''),
    ),
  )

  app.post(IMPORT_PATHS.shareAgain, route, async (request, reply) => {
    await shareAgain(request.services, request.signedIn.viewer, formText(request, 'person') ?? '')
    return reply.redirect(`${IMPORT_PATHS.page}?flash=import_shared`, 303)
  })

  for (const format of ['ndjson', 'csv'] as const) {
    app.get<{ Params: { id: string } }>(
      `${IMPORT_PATHS.page}/:id/items.${format}`,
      { ...route, config: { ...route.config, refusals: { import_not_found: 404 } } },
      async (request, reply) => {
        const archiveImport = await getArchiveImport(request.services, request.signedIn.viewer, request.params.id)
        return reply
          .type(format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson')
          .header('content-disposition', `attachment; filename="import-items.${format}"`)
          .send(Readable.from(itemLines(services.db, archiveImport.id, format)))
      },
    )
  }
}

const ITEMS_BATCH_SIZE = 1_000

/** The items of an import, line by line. */
async function* itemLines(db: Knex, importId: number, format: 'csv' | 'ndjson'): AsyncGenerator<string> {
  if (format === 'csv') yield csvLine(['section', 'position', 'ref', 'outcome', 'reason'])
  for await (const page of listItemOutcomes(db, importId, ITEMS_BATCH_SIZE)) {
    yield page.map((item) => itemLine(item, format)).join('')
  }
}

function itemLine({ section, position, ref, outcome, reason }: ItemOutcome, format: 'csv' | 'ndjson'): string {
  if (format === 'csv') return csvLine([section, position, ref, outcome, reason])
  return `${JSON.stringify({ section, position, ref, outcome, reason })}\n`
}

function actorOf({ signedIn, id }: FastifyRequest): Actor {
  const { userId, personId, guid, address } = signedIn.account
  return { userId, personId, guid, name: address, role: 'member', via: 'console', traceId: id }
}
