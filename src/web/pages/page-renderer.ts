import { Piscina } from 'piscina'
import { findKnownNames, type PublicPost } from '../../domain/posts/public-posts.js'
import type { Pod } from '../../pod/pod.js'
import { HTTP_LIMITS } from '../server/limits.js'
import { tooBusy } from '../server/request-faults.js'
import type { FeedFacts } from './feed.js'
import { PAGE_LIMITS } from './limits.js'
import type { PersonPageFacts } from './person-page.js'
import type { PostListFacts } from './post-list-page.js'
import type { PostPageFacts } from './post-page.js'
import type * as tasks from './render-thread.js'

const entry = import.meta.url.endsWith('.ts') ? './render-thread-from-source.mjs' : './render-thread.js'
const threadFile = new URL(entry, import.meta.url).href

type Tasks = typeof tasks

/**
 * Renders public pages in a thread, because a long text takes up to a third of a second to parse. Renders one page at a time;
 * requests that find a long queue, or wait too long, are answered with 503.
 */
export interface PageRenderer {
  postPage(facts: Omit<PostPageFacts, 'names'>): Promise<string>
  personPage(facts: Omit<PersonPageFacts, 'names'>): Promise<string>
  personFeed(facts: Omit<FeedFacts, 'names'>): Promise<string>
  postListPage(facts: Omit<PostListFacts, 'names'>): Promise<string>
  close(): Promise<void>
}

export function openPageRenderer(pod: Pick<Pod, 'db' | 'config'>): PageRenderer {
  const { url, podName, uploadsBaseUrl } = pod.config
  const described = { url, podName, uploadsBaseUrl }
  const threads = new Piscina({
    filename: threadFile,
    minThreads: 0,
    maxThreads: 1,
    idleTimeout: PAGE_LIMITS.threadIdleMs,
    maxQueue: PAGE_LIMITS.rendersQueued,
    resourceLimits: { maxOldGenerationSizeMb: PAGE_LIMITS.threadMegabytes },
  })

  async function run<Name extends keyof Tasks>(
    name: Name,
    task: Parameters<Tasks[Name]>[0],
  ): Promise<ReturnType<Tasks[Name]>> {
    if (threads.queueSize >= PAGE_LIMITS.rendersQueued) throw tooBusy(HTTP_LIMITS.retryAfterSeconds)
    const signal = AbortSignal.timeout(PAGE_LIMITS.renderMs)
    try {
      return await threads.run(task, { name, signal })
    } catch (error) {
      if (signal.aborted) throw tooBusy(HTTP_LIMITS.retryAfterSeconds)
      throw error
    }
  }

  const namedIn = async (texts: readonly string[]) => findKnownNames(pod, await run('findNames', texts))

  return {
    async postPage(facts) {
      const { shared, comments } = facts
      const texts = [(shared.root ?? shared).post.text, ...comments.items.map(({ text }) => text)]
      return run('renderPostPage', { facts, named: await namedIn(texts), pod: described })
    },
    async personPage(facts) {
      const named = await namedIn([facts.profile.bio, ...textsOf(facts.posts)])
      return run('renderPersonPage', { facts, named, pod: described })
    },
    async personFeed(facts) {
      return run('renderPersonFeed', { facts, named: await namedIn(textsOf(facts.posts)), pod: described })
    },
    async postListPage(facts) {
      return run('renderPostListPage', { facts, named: await namedIn(textsOf(facts.posts)), pod: described })
    },
    close: () => threads.destroy(),
  }
}

/** The texts that are shown: a reshare shows the text of its root. */
function textsOf(posts: readonly PublicPost[]): readonly string[] {
  return posts.map((shared) => (shared.root ?? shared).post.text)
}
