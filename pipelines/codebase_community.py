"""Pipelines over ``codebase_community``: the posts, comments, badges and users of a site on statistics."""

from __future__ import annotations

from typing import Any

import pandas as pd

import tagframe as tf
from pipelines.registry import Frames, answers

QUESTION = 1
"""``PostTypeId`` of a post that starts a thread."""


def _user(tables: Frames, name: str) -> list[int]:
    """The ids of users with a display name."""
    return tables["users"].query("DisplayName == @name")["Id"].tolist()


def _posts_of(tables: Frames, name: str) -> pd.DataFrame:
    """The posts of a user."""
    owners = _user(tables, name)
    return tables["posts"].query("OwnerUserId in @owners")


def _badges_of(tables: Frames, name: str) -> pd.DataFrame:
    """The badges of a user."""
    users = _user(tables, name)
    return tables["badges"].query("UserId in @users")


def _comments_on(tables: Frames, posts: pd.DataFrame) -> pd.DataFrame:
    """The comments on posts."""
    return tables["comments"][tables["comments"]["PostId"].isin(posts["Id"])]


def _posts_with_owners(tables: Frames) -> pd.DataFrame:
    """Posts, each with its owner's age."""
    owners = tables["users"][["Id", "Age"]].rename(columns={"Id": "OwnerUserId"})
    return tf.merge({"posts": tables["posts"], "owners": owners}, on="OwnerUserId", on_loss="allow")


# --- how many --------------------------------------------------------------------------------------------------------


@answers(6, reads="posts.Body users.DisplayName")
def root_posts_on_papers(tables: Frames) -> Any:
    """How many of csgillespie's questions mention academic papers."""
    roots = _posts_of(tables, "csgillespie").query("PostTypeId == @QUESTION")
    return len(roots.tag.sem_filter("the post {Body} mentions academic papers"))


@answers(8, reads="comments.Text")
def comments_on_statistics(tables: Frames) -> Any:
    """How many of the comments with a score of 17 are about statistics."""
    return len(tables["comments"].query("Score == 17").tag.sem_filter("the comment {Text} is about statistics"))


@answers(10, reads="posts.Title posts.Body")
def viewed_posts_on_r(tables: Frames) -> Any:
    """How many of the posts with over 80,000 views discuss R."""
    viewed = tables["posts"].query("ViewCount > 80000")
    return len(viewed.tag.sem_filter("the post {Title} with the text {Body} discusses the R programming language"))


@answers(27, reads="badges.Name users.Location")
def oldest_supporter_in_the_capital(tables: Frames) -> Any:
    """The oldest user in Austria's capital who has the badge Supporter."""
    supporters = tables["badges"].query("Name == 'Supporter'")["UserId"]
    users = tables["users"][tables["users"]["Id"].isin(supporters)].dropna(subset=["Age", "Location"])
    oldest_first = users.sort_values("Age", ascending=False)
    found = oldest_first.tag.sem_filter("{Location} is in the capital city of Austria", limit=1)
    return found["DisplayName"].tolist()


@answers(43, reads="users.Age")
def voters_above_the_median_age(tables: Frames) -> Any:
    """How many users with more than 100 upvotes are older than the median age in America."""
    age = tf.known("the median age in {country}, in years", "number", country="the USA")
    voters = tables["users"].query("UpVotes > 100")
    return int((voters["Age"] > age).sum())


# --- for each row ----------------------------------------------------------------------------------------------------


@answers(108, reads="votes posts.Title")
def votes_on_machine_learning(tables: Frames) -> Any:
    """For the posts that user 1465 voted on, YES where it is relevant to machine learning, else NO."""
    voted = tables["votes"].query("UserId == 1465")["PostId"]
    posts = tables["posts"][tables["posts"]["Id"].isin(voted)]
    judged = posts.tag.sem_filter("{Title} is relevant to machine learning", return_all=True)
    return judged["filter_label"].map({True: "YES", False: "NO"}).tolist()


@answers(109, reads="posts.Title users.DisplayName")
def terms_of_edited_titles(tables: Frames) -> Any:
    """The statistical term in the title of each post that Vebjorn Ljosa edited last."""
    editors = _user(tables, "Vebjorn Ljosa")
    posts = tables["posts"].query("LastEditorUserId in @editors").dropna(subset=["Title"])
    return posts.tag.sem_map("the statistical term in the title {Title}")["_map"].tolist()


@answers(110, reads="comments.Text posts.Title users")
def positive_comments_of_the_newest(tables: Frames) -> Any:
    """The positive comments that the five newest users made on 'Analysing wind data with R'."""
    comments = _comments_on(tables, tables["posts"].query("Title == 'Analysing wind data with R'"))
    users = tables["users"][["Id", "CreationDate"]].rename(columns={"Id": "UserId", "CreationDate": "Joined"})
    written = tf.merge({"comments": comments, "users": users}, on="UserId", on_loss="allow")
    newest = written.sort_values("Joined", ascending=False).head(5)
    return newest.tag.sem_filter("the sentiment of the comment {Text} is positive")["Id"].tolist()


@answers(111, reads="tags.TagName posts.Body")
def excerpt_on_bayesian(tables: Frames) -> Any:
    """Whether the excerpt post of the tag "bayesian" is true."""
    excerpt = tables["tags"].query("TagName == 'bayesian'")["ExcerptPostId"]
    posts = tables["posts"][tables["posts"]["Id"].isin(excerpt)]
    return posts.tag.sem_filter("what {Body} says is true", return_all=True)["filter_label"].tolist()


# --- ranking ---------------------------------------------------------------------------------------------------------


@answers(51, reads="posts.Title")
def popular_posts_by_technicality(tables: Frames) -> Any:
    """The titles of the five most viewed posts, the most technical one first."""
    popular = tables["posts"].nlargest(5, "ViewCount")
    return popular.tag.sem_topk("the post {Title} is the most technical", K=5)["Title"].tolist()


@answers(52, reads="comments.Text")
def posts_with_grateful_comments(tables: Frames) -> Any:
    """The two posts with the most grateful comments on 14 September 2014, in order of their number."""
    comments = tables["comments"]
    of_the_day = comments[pd.to_datetime(comments["CreationDate"]).dt.strftime("%Y-%m-%d") == "2014-09-14"]
    grateful = of_the_day.tag.sem_filter("the comment {Text} is grateful")
    return grateful["PostId"].value_counts().head(2).index.tolist()


@answers(53, reads="posts users.DisplayName comments.Text")
def most_sarcastic_comment(tables: Frames) -> Any:
    """The most sarcastic comment on csgillespie's most viewed post."""
    popular = _posts_of(tables, "csgillespie").nlargest(1, "ViewCount")
    return _comments_on(tables, popular).tag.sem_topk("the comment {Text} is the most sarcastic", K=1)["Text"].tolist()


@answers(54, reads="tags.TagName")
def tag_least_on_statistics(tables: Frames) -> Any:
    """The tag least related to statistics among the ten commonest ones."""
    common = tables["tags"].nlargest(10, "Count")
    return common.tag.sem_topk("the tag {TagName} is the least related to statistics", K=1)["TagName"].tolist()


@answers(55, reads="posts.Title posts.Body")
def most_lighthearted_post(tables: Frames) -> Any:
    """The most lighthearted of the ten posts that most users keep."""
    favourites = tables["posts"].nlargest(10, "FavoriteCount")
    return favourites.tag.sem_topk("the post {Title} with the text {Body} is the most lighthearted", K=1)["Id"].tolist()


@answers(56, reads="posts.Body users.Age")
def posts_of_least_expertise(tables: Frames) -> Any:
    """The two posts that show the least expertise, among those with a score above 10 by users above 65."""
    posts = _posts_with_owners(tables).query("Age > 65 and Score > 10")
    return posts.tag.sem_topk("the post {Body} shows the least expertise", K=2)["Id"].tolist()


@answers(57, reads="badges.Name users.DisplayName")
def badge_like_a_grammar(tables: Frames) -> Any:
    """The badge of csgillespie in 2011 whose name is most similar to a guide to English grammar."""
    badges = _badges_of(tables, "csgillespie")
    of_2011 = badges[pd.to_datetime(badges["Date"]).dt.year == 2011]
    criterion = "the name {Name} is the most similar to an English grammar guide"
    return of_2011.tag.sem_topk(criterion, K=1)["Name"].tolist()


@answers(58, reads="posts.Body users.DisplayName")
def pessimistic_posts(tables: Frames) -> Any:
    """Yevgeny's three most pessimistic posts."""
    return _posts_of(tables, "Yevgeny").tag.sem_topk("the post {Body} is the most pessimistic", K=3)["Id"].tolist()


@answers(60, reads="badges users.DisplayName")
def names_that_sound_real(tables: Frames) -> Any:
    """The two users with display names most like real names, among those with at least 200 badges."""
    badges = tables["badges"]["UserId"].value_counts()
    users = tables["users"][tables["users"]["Id"].isin(badges[badges >= 200].index)]
    criterion = "the display name {DisplayName} looks the most like a real name"
    return users.tag.sem_topk(criterion, K=2)["DisplayName"].tolist()


@answers(106, reads="users.AboutMe")
def users_with_social_media(tables: Frames) -> Any:
    """The users who link to their social media, among the five with the most views."""
    viewed = tables["users"].nlargest(5, "Views")
    return viewed.tag.sem_filter("{AboutMe} links to social media of its author")["DisplayName"].tolist()


@answers(107, reads="comments.Text users.DisplayName")
def helpful_comments(tables: Frames) -> Any:
    """The posts of Harvey Motulsky's comments with a score of 5, the most helpful comment first."""
    users = _user(tables, "Harvey Motulsky")
    comments = tables["comments"].query("UserId in @users and Score == 5")
    ranked = comments.tag.sem_topk("the comment {Text} is the most helpful", K=max(len(comments), 1))
    return ranked["PostId"].tolist()


# --- summaries -------------------------------------------------------------------------------------------------------


@answers(85, reads="posts.Title users.DisplayName")
def titles_of_csgillespie(tables: Frames) -> Any:
    """What the titles of csgillespie's posts have in common."""
    posts = _posts_of(tables, "csgillespie").dropna(subset=["Title"])
    return posts.tag.sem_agg("Summarise what the titles {Title} have in common")["_output"].iloc[0]


@answers(86, reads="badges.Name users.DisplayName")
def qualities_behind_badges(tables: Frames) -> Any:
    """The qualities that csgillespie's badges stand for."""
    badges = _badges_of(tables, "csgillespie")[["Name"]].drop_duplicates()
    instruction = "Which qualities do the badges {Name} stand for?"
    return badges.tag.sem_agg(instruction, knowledge=True)["_output"].iloc[0]


@answers(87, reads="posts.Body users.DisplayName")
def sentiment_of_csgillespie(tables: Frames) -> Any:
    """Whether csgillespie's posts are Positive or Negative on the whole."""
    posts = _posts_of(tables, "csgillespie").dropna(subset=["Body"])
    judged = posts.tag.sem_map("the sentiment of {Body}", choices=["Positive", "Negative"])
    return judged["_map"].mode().iloc[0]


@answers(88, reads="comments.Text users.DisplayName")
def comments_of_a_lion(tables: Frames) -> Any:
    """What the comments of the user 'A Lion.' are like."""
    users = _user(tables, "A Lion.")
    comments = tables["comments"].query("UserId in @users")
    return comments.tag.sem_agg("Summarise the qualities of the comments {Text}")["_output"].iloc[0]


@answers(89, reads="comments.Text posts.Title")
def comments_on_boosting(tables: Frames) -> Any:
    """The answer of comments to a question about boosting."""
    title = "How does gentle boosting differ from AdaBoost?"
    comments = _comments_on(tables, tables["posts"].query("Title == @title"))
    return comments.tag.sem_agg(f"From the comments {{Text}}, answer: {title}")["_output"].iloc[0]


@answers(90, reads="comments.Text posts users.DisplayName")
def issues_in_comments(tables: Frames) -> Any:
    """The issues that comments on Neil McGuigan's posts describe."""
    comments = _comments_on(tables, _posts_of(tables, "Neil McGuigan"))
    return comments.tag.sem_agg("Summarise the issues that the comments {Text} describe")["_output"].iloc[0]


@answers(91, reads="comments.Text posts")
def comments_on_the_best_post(tables: Frames) -> Any:
    """What the comments on the post with the highest score say."""
    comments = _comments_on(tables, tables["posts"].nlargest(1, "Score"))
    return comments.tag.sem_agg("Summarise the comments {Text}")["_output"].iloc[0]
