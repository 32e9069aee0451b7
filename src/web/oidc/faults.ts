import type { ErrorOut, KoaContextWithOIDC, Provider } from 'oidc-provider'
import { inEnglish } from '../../languages/locales.js'
import type { MessageId } from '../../languages/translate.js'
import { isDatabaseUnavailable } from '../../persistence/database/errors.js'
import type { Services } from '../../services/services.js'
import { errorPage } from '../pages/html.js'
import { chooseRequestLanguage } from '../pages/language/request-language.js'
import { HTTP_LIMITS } from '../server/limits.js'

type FaultText = Extract<MessageId, `error.${string}`>

const TEXTS = {
  invalid_client: 'error.client_unknown',
  invalid_redirect_uri: 'error.redirect_unknown',
  server_error: 'error.internal',
  temporarily_unavailable: 'error.unavailable',
} as const satisfies Readonly<Record<string, FaultText>>

function textOf(error: string) {
  const texts: Readonly<Record<string, (typeof TEXTS)[keyof typeof TEXTS]>> = TEXTS
  return texts[error] ?? 'error.client_request'
}

type FaultContext = Pick<KoaContextWithOIDC, 'status' | 'type' | 'body' | 'req'>

/** Shows an error page to the person if the error must not be sent to the client. */
export function sendFault(
  services: Pick<Services, 'config' | 'locales'>,
  ctx: FaultContext,
  { error }: ErrorOut,
): void {
  const reason = ctx.status === 503 ? 'temporarily_unavailable' : error
  const t = services.locales.translator(chooseRequestLanguage(services, ctx.req.headers))
  ctx.type = 'html'
  ctx.body = errorPage(t, ctx.status, t(textOf(reason)))
}

/** Answers 503 while the database is unavailable, and logs all other unexpected errors. */
export function watchFaults(provider: Provider, services: Pick<Services, 'config' | 'locales' | 'log'>): void {
  const { log } = services
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
    if (ctx.type === 'text/html') sendFault(services, ctx, { error: 'temporarily_unavailable' })
    else ctx.body = { error: 'temporarily_unavailable', error_description: inEnglish(TEXTS.temporarily_unavailable) }
  })
}
