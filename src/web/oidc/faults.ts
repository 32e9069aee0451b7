import type { ErrorOut, KoaContextWithOIDC, Provider } from 'oidc-provider'
import type { Logger } from 'pino'
import { isDatabaseUnavailable } from '../../persistence/database/errors.js'
import { errorPage } from '../pages/html.js'
import { HTTP_LIMITS } from '../server/limits.js'

const SENTENCES: Readonly<Record<string, string>> = {
  invalid_client: 'This application is not registered on this pod. It may have to register again.',
  invalid_redirect_uri: 'This application has not registered the address to which it wants the answer.',
  server_error: 'Something went wrong on this pod.',
  temporarily_unavailable: 'The pod cannot do this at the moment. Please try again soon.',
}

/** Shows an error page to the person if the error must not be sent to the client. */
export function answerFault(ctx: Pick<KoaContextWithOIDC, 'status' | 'type' | 'body'>, { error }: ErrorOut): void {
  const reason = ctx.status === 503 ? 'temporarily_unavailable' : error
  ctx.type = 'html'
  ctx.body = errorPage(ctx.status, SENTENCES[reason] ?? 'This request of an application is not valid.')
}

/** Answers 503 while the database is unavailable, and logs all other unexpected errors. */
export function watchFaults(provider: Provider, log: Logger): void {
  const unavailable = new WeakSet<object>()
  provider.on('server_error', (ctx, error) => {
    if (isDatabaseUnavailable(error)) {
      unavailable.add(ctx)
      log.debug({ err: error }, 'database unavailable')
    } else log.error({ err: error }, 'request failed')
  })
  provider.silent = true
  provider.use(async (ctx, next) => {
    await next()
    if (!unavailable.has(ctx)) return
    ctx.status = 503
    ctx.set('retry-after', String(HTTP_LIMITS.retryAfterSeconds))
    if (ctx.type === 'text/html') answerFault(ctx, { error: 'temporarily_unavailable' })
    else ctx.body = { error: 'temporarily_unavailable', error_description: SENTENCES['temporarily_unavailable'] }
  })
}
