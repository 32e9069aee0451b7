import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signFormTime } from '../../src/web/oidc/form-time.js'
import { violationsOn } from '../support/browser/axe.js'
import { findChromium, launchChromium } from '../support/browser/chromium.js'
import {
  LAST_COMMENT,
  OLDEST_POST,
  openSamplePages,
  openView,
  type SamplePages,
  signIn,
  type View,
} from '../support/browser/sample-pages.js'

const executablePath = findChromium()
if (executablePath === undefined)
  console.warn('No Chromium is installed: the tests of pages in a browser are left out.')

let samples: SamplePages
let browser: Browser | undefined
beforeAll(async () => {
  samples = await openSamplePages()
  browser = await launchChromium()
}, 60_000)
afterAll(async () => {
  await browser?.close()
  await samples.close()
})

/** Heading levels in the order of the page. */
function levelsIn(html: string): readonly number[] {
  return Array.from(html.matchAll(/<h([1-6])[ >]/g), ([, level]) => Number(level))
}

describe('every page', () => {
  it('has one heading of the first level, and skips no level', async () => {
    for (const [name, path] of Object.entries(samples.pages)) {
      const levels = levelsIn((await samples.pod.inject(path)).body)
      const skipped = levels.filter((level, index) => level > (levels[index - 1] ?? 0) + 1)

      expect([name, levels.filter((level) => level === 1).length, skipped]).toEqual([name, 1, []])
    }
  })

  it('isolates the direction of names and of texts', async () => {
    const page = (await samples.pod.inject(samples.pages.arabic)).body
    const person = (await samples.pod.inject(samples.pages['person-arabic'])).body

    expect(page).toMatch(/<h1 class="for-readers" dir="auto">/)
    expect(page).toMatch(/<div class="text" dir="auto">/)
    expect(page).toContain('<bdi>نور الهدى</bdi>')
    expect(person).toContain('<h1><bdi>نور الهدى</bdi></h1>')
    expect(person).toContain('<dd><bdi>القاهرة</bdi></dd>')
    expect(person).toContain('<a class="tag" href="/tags/%D8%B4%D8%A7%D9%8A"><bdi>#شاي</bdi></a>')
  })
})

/** The views to test in a browser; empty without a browser. */
const views: readonly View[] =
  executablePath === undefined
    ? []
    : [
        { colorScheme: 'light', width: 320 },
        { colorScheme: 'dark', width: 1280 },
      ]
const sizes = executablePath === undefined ? [] : [320, 1280]

async function withPage(view: View, use: (page: Page) => Promise<void>): Promise<void> {
  if (browser === undefined) throw new Error('There is no browser.')
  const context = await openView(browser, samples.url, view)
  try {
    await use(await context.newPage())
  } finally {
    await context.close()
  }
}

/** Opens all pages, one after the other: those of visitors, forms with errors, and those of a member. */
async function eachPage(page: Page, check: (name: string) => Promise<void>): Promise<void> {
  for (const [name, path] of Object.entries(samples.pages)) {
    await page.goto(path)
    await check(name)
  }
  await page.goto(samples.pages['sign-up'])
  await page.getByRole('button', { name: 'Create account' }).click()
  await check('sign-up with errors')
  await page.goto(samples.pages['sign-in'])
  await page.getByLabel('Username').fill('ann')
  await page.getByLabel('Password').fill('wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await check('sign-in with errors')
  await signIn(page, 'ben')
  for (const [name, path] of Object.entries(samples.memberPages)) {
    await page.goto(path())
    await check(`${name} of a member`)
  }
}

describe.each(views)('in Chromium, $colorScheme and $width pixels wide,', (view) => {
  it('no page has a violation that axe finds, nor is wider than the screen', async () => {
    await withPage(view, (page) =>
      eachPage(page, async (name) => {
        const width = await page.evaluate('document.documentElement.scrollWidth')

        expect([name, await violationsOn(page), Number(width) <= view.width]).toEqual([name, [], true])
      }),
    )
  }, 300_000)

  it('the API documentation has no violation that axe finds, closed, opened, in use, and in its dialog', async () => {
    await withPage(view, async (page) => {
      await page.goto('/api/docs')
      const open = async (id: string) => {
        await page.locator(`#operations-${id} .opblock-summary`).click()
        await page.locator(`#operations-${id} .responses-table`).waitFor()
      }
      const createPost = '#operations-Posts-createPost'
      // The whole page first; axe takes seconds for it, so afterwards only what has changed.
      const states: readonly (readonly [name: string, reach: () => Promise<void>, changedPart?: string])[] = [
        ['closed', () => page.locator('.opblock-summary').first().waitFor()],
        ['opened', () => open('Posts-createPost'), createPost],
        ['tried out', () => page.locator(`${createPost} .try-out__btn`).click(), createPost],
        [
          'answered',
          async () => {
            await page.locator(`${createPost} .execute`).click()
            await page.locator('.live-responses-table').waitFor()
          },
          createPost,
        ],
        [
          'a form',
          async () => {
            await open('Photos-uploadPhoto')
            await page.locator('#operations-Photos-uploadPhoto .try-out__btn').click()
          },
          '#operations-Photos-uploadPhoto',
        ],
        ['parameters', () => open('Search-searchPeople'), '#operations-Search-searchPeople'],
        [
          'the dialog',
          async () => {
            await page.locator('.btn.authorize').first().click()
            await page.locator('.modal-ux').waitFor()
          },
          '.modal-ux',
        ],
      ]
      for (const [name, reach, changedPart] of states) {
        await reach()
        const width = await page.evaluate('document.documentElement.scrollWidth')

        expect([
          name,
          await violationsOn(page, changedPart === undefined ? {} : { part: changedPart }),
          Number(width) <= view.width,
        ]).toEqual([name, [], true])
      }
      const background = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
      expect(background === 'rgb(28, 32, 34)').toBe(view.colorScheme === 'dark')
    })
  }, 120_000)
})

describe.each(sizes)('in Chromium, %i pixels wide,', (width) => {
  const view = { colorScheme: 'light', width } as const

  it('what can be clicked is at least 24 pixels high and wide, or stands in a sentence', async () => {
    await withPage(view, (page) =>
      eachPage(page, async (name) => {
        const small =
          await page.evaluate(`[...document.querySelectorAll('a, button, input:not([type=hidden]), summary')]
          .filter((target) => {
            if (!target.checkVisibility()) return false
            const inSentence = getComputedStyle(target).display === 'inline'
            const { width, height } = target.getBoundingClientRect()
            return !inSentence && (width < 24 || height < 24)
          })
          .map((target) => target.outerHTML)`)

        expect([name, small]).toEqual([name, []])
      }),
    )
  }, 60_000)

  it('the focused element has an outline', async () => {
    await withPage(view, (page) =>
      eachPage(page, async (name) => {
        const count = Number(await page.locator('a, button, input:not([type=hidden]), summary').count())
        for (let pressed = 0; pressed < Math.min(count, 12); pressed += 1) {
          await page.keyboard.press('Tab')
          const outline = await page.evaluate(`(() => {
            const focused = document.activeElement
            if (focused === null || focused === document.body) return 'none'
            const { outlineStyle, outlineWidth } = getComputedStyle(focused)
            return outlineStyle === 'solid' && parseFloat(outlineWidth) >= 2 ? 'visible' : focused.outerHTML
          })()`)
          if (outline !== 'none') expect([name, outline]).toEqual([name, 'visible'])
        }
      }),
    )
  }, 120_000)

  it('names of controls contain their visible text', async () => {
    await withPage(view, (page) =>
      eachPage(page, async (name) => {
        const wrong = await page.evaluate(`[...document.querySelectorAll('a[aria-label], button[aria-label]')]
          .filter((target) => !target.getAttribute('aria-label').includes(target.innerText.trim()))
          .map((target) => target.outerHTML)`)

        expect([name, wrong]).toEqual([name, []])
      }),
    )
  }, 60_000)
})

describe.each(executablePath === undefined ? [] : ['without JavaScript'])('in Chromium %s', () => {
  const view = { colorScheme: 'light', width: 1280, javaScriptEnabled: false } as const

  it('the newest comments can be reached from the post, and the first ones from there', async () => {
    await withPage(view, async (page) => {
      const shown = () => page.locator('#comments article').count()
      await page.goto(samples.pages.comments)
      expect(await shown()).toBe(50)
      await page.getByRole('link', { name: 'Newer comments' }).click()
      await page.waitForURL('**?after=*')
      await page.getByRole('link', { name: 'Newer comments' }).click()
      await page.getByText(LAST_COMMENT).waitFor()
      expect(await shown()).toBe(20)
      expect(await page.getByRole('link', { name: 'Newer comments' }).count()).toBe(0)

      await page.getByRole('link', { name: 'Older comments' }).click()
      await page.waitForURL('**?before=*')
      await page.getByRole('link', { name: 'Older comments' }).click()
      await page.locator('article', { hasText: 'Comment 0' }).waitFor()
      expect(await page.getByRole('link', { name: 'Older comments' }).count()).toBe(0)
    })
  })

  it('the oldest posts of a person can be reached from their page', async () => {
    await withPage(view, async (page) => {
      await page.goto(samples.pages.person)
      await page.getByRole('link', { name: 'Older posts' }).click()
      await page.getByText(OLDEST_POST).waitFor()
      expect(await page.getByRole('link', { name: 'Older posts' }).count()).toBe(0)
      await page.getByRole('link', { name: 'Newest posts' }).click()
      await page.getByRole('heading', { name: 'Public posts', exact: true }).waitFor()
    })
  })

  it('a sign-up with several mistakes shows all of them, keeps the name and focuses the first wrong field', async () => {
    await withPage(view, async (page) => {
      await page.goto(samples.pages['sign-up'])
      await page.getByLabel('Username').fill('Ann Avery')
      await page.getByLabel('Password', { exact: true }).fill('short')
      await page.getByLabel('Repeat the password').fill('other')
      const { pod } = samples.pod
      const formTime = signFormTime(pod, new Date(pod.now().getTime() - 60_000)) // programs fill in forms at once
      await page.locator('[name="form_time"]').evaluate((field, value) => field.setAttribute('value', value), formTime)
      await page.getByRole('button', { name: 'Create account' }).click()
      await page.getByRole('alert').waitFor()

      expect(await page.getByRole('alert').getByRole('link').count()).toBe(3)
      expect(await page.getByLabel('Username').inputValue()).toBe('ann avery')
      expect(await page.getByLabel('Password', { exact: true }).inputValue()).toBe('')
      expect(await page.locator(':focus').getAttribute('id')).toBe('username')
    })
  })
})

describe.each(executablePath === undefined ? [] : ['the API documentation'])('in Chromium, %s', () => {
  it('opens an operation by its address', async () => {
    await withPage({ colorScheme: 'light', width: 1280 }, async (page) => {
      await page.goto('/api/docs#/Posts/createPost')
      await page.locator('#operations-Posts-createPost .responses-table').waitFor()
      await page.locator('#operations-Posts-getPost .opblock-summary-control').click()
      await page.waitForURL('**/api/docs#/Posts/getPost')
    })
  }, 60_000)

  it('shows all operations of the client API, and those of the admin API on a page of their own', async () => {
    const { paths } = (await samples.pod.inject('/api/docs/json')).json()
    const count = (prefix: string) =>
      Object.entries(paths)
        .filter(([path]) => path.startsWith(prefix))
        .flatMap(([, operations]) => Object.keys(operations ?? {})).length
    await withPage({ colorScheme: 'light', width: 1280 }, async (page) => {
      for (const [path, prefix] of [
        ['/api/docs', '/api/v1/'],
        ['/api/docs/admin', '/api/admin/v1/'],
      ] as const) {
        await page.goto(path)
        await page
          .locator('.opblock-summary')
          .nth(count(prefix) - 1)
          .waitFor()
        expect([path, await page.locator('.opblock-summary').count()]).toEqual([path, count(prefix)])
      }
    })
  }, 60_000)
})

describe.each(executablePath === undefined ? [] : ['right to left'])('in Chromium, a text that runs %s', () => {
  it('has its quote bar on the right, and its code from left to right', async () => {
    await withPage({ colorScheme: 'light', width: 1280 }, async (page) => {
      await page.goto(samples.pages.arabic)
      const style = (selector: string, name: string) =>
        page.evaluate(`getComputedStyle(document.querySelector('${selector}')).${name}`)

      expect(await style('.text p', 'direction')).toBe('rtl')
      expect(await style('.text blockquote', 'borderRightWidth')).toBe('3px')
      expect(await style('.text blockquote', 'borderLeftWidth')).toBe('0px')
      expect(await style('.text pre', 'direction')).toBe('ltr')
      expect(await style('.text pre', 'textAlign')).toBe('left')
    })
  })
})
