import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { signFormTime } from '../../../src/web/forms/form-time.js'
import { violationsOn } from '../../support/browser/axe.js'
import { findChromium, launchChromium } from '../../support/browser/chromium.js'
import {
  LAST_COMMENT,
  OLDEST_POST,
  openSamplePages,
  openView,
  type SamplePages,
  signIn,
  type View,
} from '../../support/browser/sample-pages.js'

const executablePath = findChromium()
if (executablePath === undefined)
  console.warn('No Chromium is installed: the tests of pages in a browser are left out.')

let samples: SamplePages
let browser: Browser | undefined
beforeAll(async () => {
  samples = await openSamplePages()
  browser = await launchChromium()
}, 180_000)
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

async function withPage(view: View, use: (page: Page) => Promise<void>): Promise<void> {
  if (browser === undefined) throw new Error('There is no browser.')
  const context = await openView(browser, samples.url, view)
  try {
    await use(await context.newPage())
  } finally {
    await context.close()
  }
}

/** Opens all pages, one after the other: those of visitors, forms with errors, and those of a signed-in user. */
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
  for (const [name, path] of Object.entries(samples.signedInPages)) {
    await page.goto(path())
    await check(`${name} of a signed-in user`)
  }
}

/** Rules whose result depends on the colours or on the width; the others give the same result in all views. */
const RULES_OF_A_VIEW = ['color-contrast', 'target-size']

/** What axe finds: by all rules in the first view, in the others by those that depend on the view. */
async function findViolations(page: Page, view: View, part?: string): Promise<readonly string[]> {
  return violationsOn(page, {
    ...(part === undefined ? {} : { part }),
    ...(view === views[0] ? {} : { rules: RULES_OF_A_VIEW }),
  })
}

/** The width of the page, and elements that break a rule of this project. */
async function inspect(page: Page): Promise<PageFindings> {
  return (await page.evaluate(`(() => {
    const targets = [...document.querySelectorAll('a, button, input:not([type=hidden]), summary')]
    const isTooSmall = (target) => {
      if (!target.checkVisibility() || getComputedStyle(target).display === 'inline') return false
      const { width, height } = target.getBoundingClientRect()
      return width < 24 || height < 24
    }
    const isMisnamed = (target) =>
      target.hasAttribute('aria-label') && !target.getAttribute('aria-label').includes(target.innerText.trim())
    return {
      width: document.documentElement.scrollWidth,
      tooSmall: targets.filter(isTooSmall).map((target) => target.outerHTML),
      misnamed: targets.filter(isMisnamed).map((target) => target.outerHTML),
    }
  })()`)) as PageFindings // the object above
}

interface PageFindings {
  readonly width: number
  readonly tooSmall: readonly string[]
  readonly misnamed: readonly string[]
}

/** Elements without an outline while they have the focus. After a key, browsers show the focus that a script moves, too. */
async function findWithoutOutline(page: Page): Promise<unknown> {
  await page.keyboard.press('Tab')
  return page.evaluate(`[...document.querySelectorAll('a, button, input:not([type=hidden]), summary')]
    .filter((target) => {
      target.focus()
      if (document.activeElement !== target) return false
      const { outlineStyle, outlineWidth } = getComputedStyle(target)
      return outlineStyle !== 'solid' || parseFloat(outlineWidth) < 2
    })
    .map((target) => target.outerHTML)`)
}

const CREATE_POST = '#operations-Posts-createPost'
const UPLOAD_PHOTO = '#operations-Photos-uploadPhoto'
const SEARCH_PEOPLE = '#operations-Search-searchPeople'

/** An operation of each method with its colours, and what stands above the operations. */
const SOME_OPERATIONS = `.information-container, .opblock-tag-section:has(${CREATE_POST}), .opblock-put, .opblock-patch`

/** States of the API documentation, each reached from the one before, with the part of the page that has changed. */
function statesOfDocumentation(
  page: Page,
): readonly (readonly [name: string, part: string, reach: () => Promise<void>])[] {
  return [
    ['tried out', CREATE_POST, () => page.locator(`${CREATE_POST} .try-out__btn`).click()],
    [
      'answered',
      CREATE_POST,
      async () => {
        await page.locator(`${CREATE_POST} .execute`).click()
        await page.locator('.live-responses-table').waitFor()
      },
    ],
    [
      'a form',
      UPLOAD_PHOTO,
      async () => {
        await openOperation(page, UPLOAD_PHOTO)
        await page.locator(`${UPLOAD_PHOTO} .try-out__btn`).click()
      },
    ],
    ['parameters', SEARCH_PEOPLE, () => openOperation(page, SEARCH_PEOPLE)],
    [
      'the dialog',
      '.modal-ux',
      async () => {
        await page.locator('.btn.authorize').first().click()
        await page.locator('.modal-ux').waitFor()
      },
    ],
  ]
}

async function openOperation(page: Page, operation: string): Promise<void> {
  await page.locator(`${operation} .opblock-summary`).click()
  await page.locator(`${operation} .responses-table`).waitFor()
}

/** Waits for as many operations as the document has below the path. A busy machine takes long to draw them. */
async function expectOperations(page: Page, prefix: string): Promise<void> {
  const { paths } = (await samples.pod.inject('/api/docs/json')).json()
  const operations = Object.entries(paths)
    .filter(([path]) => path.startsWith(prefix))
    .flatMap(([, methods]) => Object.keys(methods ?? {}))
  const shown = page.locator('.opblock-summary')
  await shown.nth(operations.length - 1).waitFor({ timeout: 120_000 })
  expect(await shown.count()).toBe(operations.length)
}

describe.each(views)('in Chromium, $colorScheme and $width pixels wide,', (view) => {
  it('each page has no violation that axe finds, fits, and has targets of 24 pixels with names and a visible focus', async () => {
    await withPage(view, (page) =>
      eachPage(page, async (name) => {
        const violations = await findViolations(page, view)
        const { width, tooSmall, misnamed } = await inspect(page)
        const withoutOutline = await findWithoutOutline(page)

        expect({ name, violations, fits: width <= view.width, tooSmall, misnamed, withoutOutline }).toEqual({
          name,
          violations: [],
          fits: true,
          tooSmall: [],
          misnamed: [],
          withoutOutline: [],
        })
      }),
    )
  }, 300_000)

  it('the API documentation shows all operations, opens one by its address, and has no violation that axe finds', async () => {
    await withPage(view, async (page) => {
      await page.goto('/api/docs#/Posts/createPost')
      await expectOperations(page, '/api/v1/')
      await page.locator(`${CREATE_POST} .responses-table`).waitFor()
      const check = async (name: string, part?: string) => {
        const violations = await findViolations(page, view, part)
        const { width } = await inspect(page)
        expect([name, violations, width <= view.width]).toEqual([name, [], true])
      }
      // axe takes seconds for the whole page.
      await check('opened', view === views[0] ? undefined : SOME_OPERATIONS)
      // The other views differ in colours, which the dialog and some operations have all.
      const states = statesOfDocumentation(page).filter(([name]) => view === views[0] || name === 'the dialog')
      for (const [name, part, reach] of states) {
        await reach()
        await check(name, part)
      }
      const background = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor')
      expect(background === 'rgb(28, 32, 34)').toBe(view.colorScheme === 'dark')
    })
  }, 300_000)
})

describe.each(executablePath === undefined ? [] : ['without JavaScript'])('in Chromium %s', () => {
  const view = { colorScheme: 'light', width: 1280, javaScriptEnabled: false } as const

  it('the newest comments can be reached from the post, and the first ones from there', async () => {
    await withPage(view, async (page) => {
      const countShown = () => page.locator('#comments article').count()
      await page.goto(samples.pages.comments)
      expect(await countShown()).toBe(50)
      await page.getByRole('link', { name: 'Newer comments' }).click()
      await page.waitForURL('**?after=*')
      await page.getByRole('link', { name: 'Newer comments' }).click()
      await page.getByText(LAST_COMMENT).waitFor()
      expect(await countShown()).toBe(20)
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

describe.each(executablePath === undefined ? [] : ['the documentation of the admin API'])('in Chromium, %s', () => {
  it('shows all its operations on a page of its own, and puts the address of an opened one into the location', async () => {
    await withPage({ colorScheme: 'light', width: 1280 }, async (page) => {
      await page.goto('/api/docs/admin')
      await expectOperations(page, '/api/admin/v1/')
      await page.locator('.opblock-summary-control').first().click()
      await page.waitForURL('**/api/docs/admin#/*/*')
    })
  }, 150_000)
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
