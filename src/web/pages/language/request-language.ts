import type { FastifyReply, FastifyRequest } from 'fastify'
import { chooseLanguage, type LanguagePreferences } from '../../../languages/choose-language.js'
import type { Services } from '../../../services/services.js'
import { addVary } from '../../server/headers.js'
import { type PageTexts, withChoice } from './page-texts.js'

type LanguageDependencies = Pick<Services, 'config' | 'locales'>

const COOKIE = 'pod_lang'
const A_YEAR = 365 * 86_400

/** The language for a request; `preferences` has what its headers do not say. */
export function chooseRequestLanguage(
  { config, locales }: LanguageDependencies,
  headers: { readonly cookie?: string | undefined; readonly 'accept-language'?: string | undefined },
  preferences: Pick<LanguagePreferences, 'setting' | 'uiLocales'> = {},
): string {
  const keptLanguage = cookieLanguage(headers.cookie)
  const all = { ...preferences, kept: keptLanguage, accepted: headers['accept-language'] }
  return chooseLanguage(all, locales.languages, config.defaultLanguage)
}

/** The messages in the language for a request. The response says that it depends on the headers with the language. */
export function textsFor(
  request: FastifyRequest,
  reply: FastifyReply,
  preferences: Pick<LanguagePreferences, 'setting' | 'uiLocales'> = {},
): PageTexts {
  const { services } = request.server
  const language = chooseRequestLanguage(services, request.headers, preferences)
  addVary(reply, 'Accept-Language')
  addVary(reply, 'Cookie')
  reply.header('content-language', language)
  const choice = { languages: services.locales.languages, returnTo: pathBackTo(request) }
  return withChoice(services.locales.translator(language), preferences.setting === undefined ? choice : undefined)
}

/** The page of a form is shown again with the request of its client. */
function pathBackTo({ method, originalUrl, body }: FastifyRequest): string {
  if (method === 'GET' || method === 'HEAD') return originalUrl
  const [path = '/'] = originalUrl.split('?')
  const uid: unknown = typeof body === 'object' && body !== null ? Reflect.get(body, 'request') : undefined
  return typeof uid === 'string' && uid !== '' ? `${path}?request=${encodeURIComponent(uid)}` : path
}

/** Keeps the choice in the browser, and sends it back to the page. */
export function setLanguageCookie(reply: FastifyReply, language: string): void {
  const isHttps = reply.server.services.config.url.startsWith('https:')
  const parts = [`${COOKIE}=${language}`, 'Path=/', `Max-Age=${A_YEAR}`, 'HttpOnly', 'SameSite=Lax']
  const cookie = [...parts, ...(isHttps ? ['Secure'] : [])].join('; ')
  // The library of OpenID Connect sets its cookies there, too.
  const others = [reply.raw.getHeader('set-cookie') ?? []].flat().map(String)
  reply.raw.setHeader('set-cookie', [...others, cookie])
}

export function cookieLanguage(cookies: string | undefined): string | undefined {
  return /(?:^|; *)pod_lang=([\w-]{2,35})/.exec(cookies ?? '')?.[1]
}
