import type { FastifyInstance } from 'fastify'
import { signFormTime } from '../../../src/web/forms/form-time.js'

type InjectResponse = Awaited<ReturnType<FastifyInstance['inject']>>

/** A browser without scripts: it keeps cookies, fills in the form of the current page, and follows redirects. */
export interface TestBrowser {
  /** The open page, or the response that redirected to another host. */
  readonly page: InjectResponse
  /** URL of the open page. */
  readonly url: URL
  visit(url: string): Promise<InjectResponse>
  /** Fills in and submits the form of this page. `formaction` is the URL of a button that has one. */
  submit(fields: Record<string, string>, action?: string, formaction?: string): Promise<InjectResponse>
  readonly cookies: ReadonlyMap<string, string>
}

const MAX_REDIRECTS = 10
let addresses = 0

export function newAddress(): string {
  addresses += 1
  return `10.9.${Math.floor(addresses / 250)}.${(addresses % 250) + 1}`
}

/** Each browser has its own address, unless one is given, so that rate limits do not affect the next one. */
export function openBrowser(app: FastifyInstance, origin: string, ip: string = newAddress()): TestBrowser {
  const jar = new Map<string, { readonly value: string; readonly path: string }>()
  let page: InjectResponse | undefined
  let url = new URL(origin)

  async function go(target: string, form?: URLSearchParams): Promise<InjectResponse> {
    let request = { to: new URL(target, url), form }
    for (let hop = 0; hop < MAX_REDIRECTS; hop += 1) {
      url = request.to
      page = await app.inject({
        method: request.form ? 'POST' : 'GET',
        url: `${url.pathname}${url.search}`,
        remoteAddress: ip,
        headers: {
          accept: 'text/html',
          cookie: cookiesFor(url.pathname),
          ...(request.form && { 'content-type': 'application/x-www-form-urlencoded' }),
        },
        ...(request.form && { payload: request.form.toString() }),
      })
      keepCookies(page)
      const { location } = page.headers
      if (page.statusCode < 300 || page.statusCode >= 400 || typeof location !== 'string') return page
      request = { to: new URL(location, url), form: undefined }
      if (request.to.origin !== new URL(origin).origin) {
        url = request.to
        return page
      }
    }
    throw new Error('Too many redirects.')
  }

  function cookiesFor(path: string): string {
    return [...jar]
      .flatMap(([key, cookie]) => (path.startsWith(cookie.path) ? `${key.split(' ')[0]}=${cookie.value}` : []))
      .join('; ')
  }

  function keepCookies({ cookies }: InjectResponse): void {
    for (const cookie of cookies) {
      const { name, value, expires } = cookie
      const path = String(cookie['path'] ?? '/')
      if (expires && expires.getTime() < Date.now()) jar.delete(`${name} ${path}`)
      else jar.set(`${name} ${path}`, { value, path })
    }
  }

  return {
    get page() {
      if (page === undefined) throw new Error('No page is open.')
      return page
    },
    get url() {
      return url
    },
    visit: (target) => go(new URL(target, origin).href),
    async submit(fields, action, formaction) {
      const forms = [...this.page.body.matchAll(/<form[^>]* method="post" action="([^"]*)"[^>]*>([\s\S]*?)<\/form>/g)]
      const form = forms.find(([, target]) => action === undefined || target === action)
      if (form === undefined) throw new Error(`The form is missing on ${url.href}: ${this.page.body}`)
      const [, target = '', inside = ''] = form
      const hidden = [...inside.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)">/g)]
      const values = Object.fromEntries(hidden.map(([, name = '', value = '']) => [name, unescapeHtml(value)]))
      // A person takes some seconds to fill in a form.
      const aged = values['form_time'] && {
        form_time: signFormTime(app.services, new Date(app.services.now().getTime() - 5_000)),
      }
      return go(formaction ?? target, new URLSearchParams({ ...values, ...aged, ...fields }))
    },
    get cookies() {
      return new Map([...jar].map(([key, { value }]) => [key.split(' ')[0] ?? '', value]))
    },
  }
}

/** Reverses `escapeHtml`. */
function unescapeHtml(text: string): string {
  return text.replace(/&#([0-9]+);/g, (_, code) => String.fromCharCode(Number(code)))
}
