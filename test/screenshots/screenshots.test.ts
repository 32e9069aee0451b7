import { mkdir, stat } from 'node:fs/promises'
import type { BrowserContext, Page } from 'playwright-core'
import sharp from 'sharp'
import { expect, it } from 'vitest'
import { createSampleData } from '../../bin/seed/sample-data.js'
import { createSampleUser } from '../../bin/seed/sample-users.js'
import { launchChromium } from '../support/browser/chromium.js'
import { openSampleConsole, type SampleConsole } from '../support/browser/sample-console.js'
import type { View } from '../support/browser/sample-pages.js'
import { openConsoleView } from '../support/browser/walk-console.js'

const FOLDER = 'docs/pictures'
const MAX_BYTES = 100_000
const TEXT = 'Watch shop: cheap watches, only today at https://shop.example/watches'

interface Screenshot {
  readonly name: string
  readonly path: string
  readonly width?: number
  readonly height?: number
  readonly isDark?: boolean
}

it('makes the pictures of the documentation', async () => {
  const samples = await openSampleConsole(TEXT)
  const browser = await launchChromium()
  if (browser === undefined) throw new Error('Install Chromium, or set CHROMIUM_PATH.')
  try {
    await mkdir(FOLDER, { recursive: true })
    const shots: readonly Screenshot[] = [
      { name: 'console-overview', path: '/admin', height: 800 },
      { name: 'console-reports', path: '/admin/reports', width: 390, height: 800, isDark: true },
      { name: 'console-report', path: samples.pages['report'] ?? '', height: 1_010 },
      { name: 'console-cluster', path: samples.pages['cluster'] ?? '', height: 900, isDark: true },
      { name: 'console-queues', path: '/admin/queues', height: 1_020 },
      { name: 'page-post', path: await findPublicPost(samples), height: 530 },
    ]
    for (const shot of shots)
      expect(await takeScreenshot(await openConsoleView(browser, samples, 'adm', viewOf(shot)), shot)).toBeLessThan(
        MAX_BYTES,
      )
  } finally {
    await browser.close()
    await samples.close()
  }
})

/** Path of the public sample post with the most comments. */
async function findPublicPost({ pod: { pod } }: SampleConsole): Promise<string> {
  const password = 'correct horse battery'
  const [alice, bob] = [await createSampleUser(pod, 'alice', password), await createSampleUser(pod, 'bob', password)]
  await createSampleData(pod, alice, bob)
  const post = await pod
    .db('posts')
    .join('comments', 'comments.postId', 'posts.id')
    .where({ public: true })
    .groupBy('posts.guid')
    .orderByRaw('count(*) desc')
    .first('posts.guid')
  return `/posts/${post.guid}`
}

const viewOf = ({ width = 1100, isDark = false }: Screenshot): View => ({
  width,
  colorScheme: isDark ? 'dark' : 'light',
})

/** Takes a screenshot and returns its size in bytes. */
async function takeScreenshot(context: BrowserContext, { name, path, height = 720 }: Screenshot): Promise<number> {
  const page: Page = await context.newPage()
  await page.goto(path)
  const { width = 0 } = page.viewportSize() ?? {}
  await page.setViewportSize({ width, height })
  const file = `${FOLDER}/${name}.webp`
  await sharp(await page.screenshot())
    .webp({ quality: 82, effort: 6 })
    .toFile(file)
  await context.close()
  return (await stat(file)).size
}
