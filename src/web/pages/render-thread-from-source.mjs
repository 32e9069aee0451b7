// Under vitest and tsx the thread runs TypeScript and loads tsx itself: a thread does not inherit the options of its process.
import { register } from 'tsx/esm/api'

register()
export const { findNames, renderPersonFeed, renderPersonPage, renderPostListPage, renderPostPage } = await import(
  './render-thread.ts'
)
