import type { FastifyPluginAsync } from 'fastify'
import { findAccountWithRole } from '../../domain/accounts/staff.js'
import { termsHtml, termsPage } from '../pages/accounts/terms-page.js'
import { formPolicy } from '../pages/forms.js'
import { type PageTexts, withChoice } from '../pages/language/page-texts.js'
import { cookieLanguage, setLanguageCookie, textsFor } from '../pages/language/request-language.js'
import { appsPage, signedInStartPage, startPage } from '../pages/start/start-page.js'
import { queryText } from '../schemas/query-text.js'
import { getBrowser } from './browser.js'
import { OIDC_PATHS } from './paths.js'

/** A path of this pod with its query: nothing that a browser reads as another host. */
const OWN_PATH = /^\/(?![/\\])[\w\-./?=&%:~+,@!*();$]{0,2000}$/

/** `/`: a page for visitors, and one for each person who is signed in; the apps; the terms; and the choice of a language. */
export const startPageRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const { podName, host, registrations } = services.config
  const route = { config: { public: true }, schema: { hide: true } } as const

  /** Pages of visitors by language: they are the same for all visitors. */
  const visitorPages = new Map<string, string>()

  function visitorPage(t: PageTexts): string {
    const cachedPage = visitorPages.get(t.language)
    if (cachedPage !== undefined) return cachedPage
    const { signUp, signIn } = OIDC_PATHS
    const terms = services.terms && OIDC_PATHS.terms
    const translate = withChoice(t, { languages: services.locales.languages, returnTo: '/' })
    const html = startPage({ t: translate, podName, host, registrations, signUp, signIn, terms })
    visitorPages.set(t.language, html)
    return html
  }

  app.get('/', route, async (request, reply) => {
    reply.type('text/html; charset=utf-8')
    // Without cookies there is no session to read.
    const browser = request.headers.cookie === undefined ? undefined : await getBrowser(app, request, reply)
    const address = await browser?.findSignedInAddress()
    const account = address && (await findAccountWithRole(request.services, { 'person.address': address }))
    if (browser === undefined || !account) {
      return reply.header('cache-control', 'public, max-age=300').send(visitorPage(textsFor(request, reply)))
    }
    if (cookieLanguage(request.headers.cookie) !== account.language) setLanguageCookie(reply, account.language)
    return reply
      .header('cache-control', 'private, no-store')
      .header('content-security-policy', formPolicy({ mayLeadToClient: false }))
      .send(
        signedInStartPage({
          t: textsFor(request, reply, { setting: account.language }),
          podName,
          host,
          address: account.address,
          mailState: account.mailState,
          formToken: browser.formToken(),
          signOut: OIDC_PATHS.signOut,
          isNew: queryText(request, 'welcome') !== undefined,
        }),
      )
  })

  app.get('/apps', route, async (request, reply) => {
    const t = textsFor(request, reply)
    return reply
      .type('text/html; charset=utf-8')
      .header('cache-control', 'public, max-age=300')
      .send(appsPage({ t, podName, host }))
  })

  if (services.terms !== undefined) {
    const { version } = services.terms
    const text = termsHtml(services.terms)
    app.get(OIDC_PATHS.terms, route, async (request, reply) => {
      const t = textsFor(request, reply)
      return reply
        .type('text/html; charset=utf-8')
        .header('cache-control', 'public, max-age=300')
        .send(termsPage({ t, podName, version, text }))
    })
  }

  // A link and no form, so that pages need no cookie for it. It changes nothing but the language of this browser.
  app.get('/language', route, async (request, reply) => {
    const language = queryText(request, 'to') ?? ''
    const returnTo = queryText(request, 'return_to') ?? '/'
    if (services.locales.languages.includes(language)) setLanguageCookie(reply, language)
    return reply.header('cache-control', 'no-store').redirect(OWN_PATH.test(returnTo) ? returnTo : '/', 303)
  })
}
